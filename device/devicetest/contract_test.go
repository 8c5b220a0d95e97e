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
	name  *string
	kind  device.Kind // the operations that do computes
	do    func(d *cpu.Device, op *device.Op)
	read  func(dst []float32, src device.Vector)
	index func(coordinates []uint32) []uint32
	move  float64 // factor on the momentum; 0 leaves it unchanged
	run   func(p device.Program, params, grad device.Vector, b device.Batch, out []float64) error
}

func (s *faulty) Name() string {
	if s.name != nil {
		return *s.name
	}
	return s.Device.Name()
}

func (s *faulty) Do(ops ...device.Op) {
	if s.do == nil {
		s.Device.Do(ops...)
		return
	}
	for i := range ops {
		if op := &ops[i]; op.Kind == s.kind {
			s.do(s.Device, op)
		} else {
			s.Device.Do(*op)
		}
	}
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
		faulty{do: func(_ *cpu.Device, op *device.Op) {
			for i := range data(op.Out[0]) {
				sum := 0.0
				for _, t := range op.Terms {
					sum = float64(float32(math.FMA(float64(float32(t.A)), float64(data(t.V)[i]), sum)))
				}
				data(op.Out[0])[i] = float32(sum)
			}
		}}},
	"Combine clears dst first": {"combine in place",
		faulty{do: func(d *cpu.Device, op *device.Op) {
			dst := op.Out[0]
			d.Do(device.Combine(dst))
			for _, t := range op.Terms {
				d.Do(device.Combine(dst, device.Term{A: 1, V: dst}, t))
			}
		}}},
	"Combine drifts": {"history", faulty{do: func(d *cpu.Device, op *device.Op) {
		d.Do(*op, device.Combine(op.Out[0], device.Term{A: 1 + 1e-4, V: op.Out[0]}))
	}}},
	"Combine depends on others": {"concurrent vectors", faulty{do: combineWithMemory()}},
	"Combine forgets lengths":   {"caller's bugs", faulty{do: func(*cpu.Device, *device.Op) {}}},
	"Gather writes src": {"gather", faulty{kind: device.KindGather, do: func(d *cpu.Device, op *device.Op) {
		d.Do(*op)
		if op.In[0].Len() > 5 {
			data(op.In[0])[5]++
		}
	}}},
	"a neighbour reads what was there before": {"neighbours",
		faulty{kind: device.KindGather, do: func(*cpu.Device, *device.Op) {}}},
	"Index forgets its end": {"gather", faulty{index: func(c []uint32) []uint32 { return c[:max(0, len(c)-1)] }}},
	"Index is shifted": {"index", faulty{index: func(c []uint32) []uint32 {
		shifted := append([]uint32{}, c...)
		if len(c) > 0 && c[0] > 0 {
			shifted[0]--
		}
		return shifted
	}}},
	"AddDiff distributes the coefficient": {"add difference",
		faulty{kind: device.KindAddDiff, do: func(d *cpu.Device, op *device.Op) {
			zero := d.NewVector(op.In[0].Len())
			d.Do(device.AddDiff(op.In[0], zero, op.Idx, op.To...), device.AddDiff(zero, op.In[1], op.Idx, op.To...))
		}}},
	"AddDiff has a direction": {"ends of an edge", faulty{kind: device.KindAddDiff,
		do: func(d *cpu.Device, op *device.Op) {
			d.Do(*op)
			if v := data(op.To[0].V); data(op.In[0])[0] > data(op.In[1])[0] {
				v[len(v)-1] *= 1.0001
			}
		}}},
	"Dot adds in float32": {"dot", faulty{kind: device.KindDot, do: func(_ *cpu.Device, op *device.Op) {
		sum := float32(0)
		for i, v := range data(op.In[0]) {
			sum += v * data(op.In[1])[i]
		}
		*op.Sum = float64(sum)
	}}},
	"Multiply rounds alpha": {"multiply", faulty{kind: device.KindMultiply, do: func(d *cpu.Device, op *device.Op) {
		rounded := *op
		rounded.Product.Alpha = float64(float32(op.Product.Alpha))
		d.Do(rounded)
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
func combineWithMemory() func(*cpu.Device, *device.Op) {
	var mu sync.Mutex
	calls := 0
	return func(d *cpu.Device, op *device.Op) {
		d.Do(*op)
		mu.Lock()
		defer mu.Unlock()
		if calls++; calls == 7 {
			data(op.Out[0])[11]++
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
