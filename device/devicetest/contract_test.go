package devicetest_test

import (
	"math"
	"runtime"
	"strings"
	"sync"
	"testing"

	"fspda/cpu"
	"fspda/device"
	"fspda/device/devicetest"
)

// recorder counts the errors that a check reports.
type recorder struct {
	testing.TB
	mu      sync.Mutex
	reports int
}

func (*recorder) Helper() {}

func (r *recorder) Errorf(string, ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reports++
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

// faulty is the CPU device with one injected fault.
type faulty struct {
	*cpu.Device
	name    *string
	combine func(d *cpu.Device, dst device.Vector, terms []device.Term)
	gather  func(dst, src device.Vector, idx device.Index)
	addDiff func(d *cpu.Device, own, other device.Vector, idx device.Index, to []device.Term)
	dot     func(a, b []float32) float64
	read    func(dst []float32, src device.Vector)
	index   func(coordinates []uint32) []uint32
	move    float64 // factor on the momentum; 0 leaves it unchanged
	run     func(p device.Program, params, grad device.Vector, b device.Batch, out []float64) error
}

func (s *faulty) Name() string {
	if s.name != nil {
		return *s.name
	}
	return s.Device.Name()
}

func (s *faulty) Combine(dst device.Vector, terms ...device.Term) {
	if s.combine != nil {
		s.combine(s.Device, dst, terms)
		return
	}
	s.Device.Combine(dst, terms...)
}

func (s *faulty) Gather(dst, src device.Vector, idx device.Index) {
	s.Device.Gather(dst, src, idx)
	if s.gather != nil {
		s.gather(dst, src, idx)
	}
}

func (s *faulty) AddDiff(own, other device.Vector, idx device.Index, to ...device.Term) {
	if s.addDiff != nil {
		s.addDiff(s.Device, own, other, idx, to)
		return
	}
	s.Device.AddDiff(own, other, idx, to...)
}

func (s *faulty) Dot(a, b device.Vector) float64 {
	if s.dot != nil {
		return s.dot(data(a), data(b))
	}
	return s.Device.Dot(a, b)
}

func (s *faulty) Read(dst []float32, src device.Vector) {
	s.Device.Read(dst, src)
	if s.read != nil {
		s.read(dst, src)
	}
}

func (s *faulty) NewIndex(coordinates []uint32, old device.Index) device.Index {
	if s.index != nil {
		coordinates = s.index(coordinates)
	}
	return s.Device.NewIndex(coordinates, old)
}

func (s *faulty) Load(code *device.Code) (device.Program, error) {
	p, err := s.Device.Load(code)
	if err == nil && s.run != nil {
		return &faultyProgram{p, s.run}, nil
	}
	if err == nil && s.move != 0 {
		return &scaledMomentumProgram{p, s.move}, nil
	}
	return p, err
}

type faultyProgram struct {
	device.Program
	run func(p device.Program, params, grad device.Vector, b device.Batch, out []float64) error
}

func (p *faultyProgram) Run(params, grad device.Vector, b device.Batch, out []float64) error {
	return p.run(p.Program, params, grad, b, out)
}

// scaledMomentumProgram moves buffers too far.
type scaledMomentumProgram struct {
	device.Program
	by float64
}

func (p *scaledMomentumProgram) RunBuffered(params, grad, buffers device.Vector, momentum float64, b device.Batch,
	out []float64) error {
	return p.Program.RunBuffered(params, grad, buffers, min(1, momentum*p.by), b, out)
}

func data(v device.Vector) []float32 { return v.(*cpu.Vector).Data }

// faults lists faulty devices and the part of the contract that must detect each.
var faults = map[string]struct {
	check  string
	device faulty
}{
	"no name": {"copies", faulty{name: new(string)}},
	"Read flushes denormals": {"copies", faulty{read: func(dst []float32, _ device.Vector) {
		for i, v := range dst {
			if v > -0x1p-126 && v < 0x1p-126 {
				dst[i] = 0
			}
		}
	}}},
	"Read writes beyond dst": {"copies",
		faulty{read: func(dst []float32, _ device.Vector) { dst[:len(dst)+1][len(dst)] = 1 }}},
	"Combine fuses product and sum": {"combine",
		faulty{combine: func(_ *cpu.Device, dst device.Vector, terms []device.Term) {
			for i := range data(dst) {
				sum := 0.0
				for _, t := range terms {
					sum = float64(float32(math.FMA(float64(float32(t.A)), float64(data(t.V)[i]), sum)))
				}
				data(dst)[i] = float32(sum)
			}
		}}},
	"Combine clears dst first": {"combine in place",
		faulty{combine: func(d *cpu.Device, dst device.Vector, terms []device.Term) {
			d.Combine(dst)
			for _, t := range terms {
				d.Combine(dst, device.Term{A: 1, V: dst}, t)
			}
		}}},
	"Combine drifts": {"history", faulty{combine: func(d *cpu.Device, dst device.Vector, terms []device.Term) {
		d.Combine(dst, terms...)
		d.Combine(dst, device.Term{A: 1 + 1e-4, V: dst})
	}}},
	"Combine depends on others": {"concurrent vectors", faulty{combine: combineWithMemory()}},
	"Combine forgets lengths":   {"caller's bugs", faulty{combine: func(*cpu.Device, device.Vector, []device.Term) {}}},
	"Gather writes src": {"gather", faulty{gather: func(_, src device.Vector, _ device.Index) {
		if src.Len() > 5 {
			data(src)[5]++
		}
	}}},
	"Index forgets its end": {"gather", faulty{index: func(c []uint32) []uint32 { return c[:max(0, len(c)-1)] }}},
	"Index is shifted": {"index", faulty{index: func(c []uint32) []uint32 {
		shifted := append([]uint32{}, c...)
		if len(c) > 0 && c[0] > 0 {
			shifted[0]--
		}
		return shifted
	}}},
	"AddDiff distributes the coefficient": {"add difference",
		faulty{addDiff: func(_ *cpu.Device, own, other device.Vector, idx device.Index, to []device.Term) {
			new(cpu.Device).AddDiff(own, new(cpu.Device).NewVector(own.Len()), idx, to...)
			new(cpu.Device).AddDiff(new(cpu.Device).NewVector(own.Len()), other, idx, to...)
		}}},
	"AddDiff has a direction": {"ends of an edge", faulty{addDiff: func(d *cpu.Device, own, other device.Vector,
		idx device.Index, to []device.Term) {
		d.AddDiff(own, other, idx, to...)
		if data(own)[0] > data(other)[0] {
			data(to[0].V)[len(data(to[0].V))-1] *= 1.0001
		}
	}}},
	"Dot adds in float32": {"dot", faulty{dot: func(a, b []float32) float64 {
		sum := float32(0)
		for i := range a {
			sum += a[i] * b[i]
		}
		return float64(sum)
	}}},
	"Run is inexact": {"linear", faulty{run: func(p device.Program, params, grad device.Vector, b device.Batch,
		out []float64) error {
		err := p.Run(params, grad, b, out)
		for i := range out {
			out[i] *= 1 + 1e-5
		}
		return err
	}}},
	"Run is a last bit off": {"add-scaled", faulty{run: func(p device.Program, params, grad device.Vector,
		b device.Batch, out []float64) error {
		err := p.Run(params, grad, b, out)
		if len(out) > 8 {
			out[8] = float64(math.Nextafter32(float32(out[8]), 9))
		}
		return err
	}}},
	"Run writes a word too many": {"linear-grad-w", faulty{run: func(p device.Program, params, grad device.Vector,
		b device.Batch, out []float64) error {
		if grad != nil {
			data(grad)[0] = 0
		}
		return p.Run(params, grad, b, out)
	}}},
	"Run moves the parameters": {"relu", faulty{run: func(p device.Program, params, grad device.Vector, b device.Batch,
		out []float64) error {
		defer func() { data(params)[0] = 3 }()
		return p.Run(params, grad, b, out)
	}}},
	"Run swallows errors": {"labels", faulty{run: func(p device.Program, params, grad device.Vector, b device.Batch,
		out []float64) error {
		_ = p.Run(params, grad, b, out)
		return nil
	}}},
	"Run takes any batch": {"batches", faulty{run: func(p device.Program, params, grad device.Vector, b device.Batch,
		out []float64) error {
		_ = p.Run(params, grad, b, out)
		return nil
	}}},
	"Run makes NaN of large numbers": {"special values", faulty{run: func(p device.Program, params, grad device.Vector,
		b device.Batch, out []float64) error {
		err := p.Run(params, grad, b, out)
		for i, v := range out {
			if math.IsInf(v, 0) {
				out[i] = math.NaN()
			}
		}
		return err
	}}},
	"RunBuffered moves too far": {"buffers", faulty{move: 1.001}},
	"Score takes ties for hits": {"ties and NaN in score",
		faulty{run: func(p device.Program, params, grad device.Vector, b device.Batch, out []float64) error {
			err := p.Run(params, grad, b, out)
			if len(out) == 3 && b.X[0] == b.X[len(b.X)-1] {
				out[1] = 1
			}
			return err
		}}},
}

// combineWithMemory shares state between all callers, so concurrent use corrupts the result.
func combineWithMemory() func(*cpu.Device, device.Vector, []device.Term) {
	var mu sync.Mutex
	calls := 0
	return func(d *cpu.Device, dst device.Vector, terms []device.Term) {
		d.Combine(dst, terms...)
		mu.Lock()
		defer mu.Unlock()
		if calls++; calls == 7 {
			data(dst)[11]++
		}
	}
}

// The contract detects every fault.
func TestContractCatchesFaults(t *testing.T) {
	for name, f := range faults {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			r := &recorder{TB: t}
			f.device.Device = cpu.New()
			var wg sync.WaitGroup
			wg.Go(func() { devicetest.Report(r, f.check, &f.device) }) // which Fatalf may end
			wg.Wait()
			if r.reports == 0 {
				t.Errorf("part %q does not detect the fault", f.check)
			}
		})
	}
}
