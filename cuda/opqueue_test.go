package cuda

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"fspda/cpu"
	"fspda/cuda/driver"
	"fspda/cuda/driver/fakegpu"
	"fspda/device"
	"fspda/internal/rng"
)

// history plays a random history of operations on a few vectors, each of which reads and writes
// what others do, and returns all that was read.
func history(d device.Device, seed uint64) []string {
	const vectors, n, k = 5, 64, 9
	s := rng.New(seed, "history")
	var all []device.Vector
	host := make([]float32, n)
	for range vectors {
		all = append(all, d.NewVector(n))
	}
	few := []device.Vector{d.NewVector(k), d.NewVector(k)}
	at := make([]uint32, k)
	for j := range at {
		at[j] = uint32(j*7 + s.IntN(7))
	}
	x := d.NewIndex(at, nil)
	any := func() device.Vector { return all[s.IntN(vectors)] }
	term := func() device.Term { return device.Term{A: float64(s.IntN(5)-2) / 4, V: any()} }
	other := func(v device.Vector) device.Vector {
		for {
			if w := any(); w != v {
				return w
			}
		}
	}
	var seen []string
	for range 150 {
		v := any()
		switch s.IntN(9) {
		case 0:
			for i := range host {
				host[i] = float32(s.IntN(100)) / 8
			}
			d.Write(v, host)
		case 1, 2, 3:
			terms := make([]device.Term, s.IntN(5))
			for i := range terms {
				terms[i] = term()
			}
			d.Combine(v, terms...)
		case 4:
			d.Gather(few[s.IntN(2)], v, x)
		case 5:
			d.AddDiff(few[0], few[1], x, device.Term{A: 0.5, V: v}, device.Term{A: -0.25, V: other(v)})
		case 6:
			d.AddDiffs(term(), v, []device.Term{term(), term()}, device.Term{A: 0.25, V: other(v)})
		case 7:
			d.ScatterAdd(v, device.SparseTerm{A: 0.5, V: few[0], Idx: x}, device.SparseTerm{A: 0.5, V: few[1], Idx: x})
		case 8:
			if s.IntN(4) > 0 {
				continue
			}
			d.Read(host, v)
			seen = append(seen, fmt.Sprint(host, d.Dot(v, any())))
		}
	}
	for _, v := range all {
		d.Read(host, v)
		seen = append(seen, fmt.Sprint(host))
	}
	return seen
}

// Whatever waits in windows and goes in waves, all is as if it were done one after the other.
func TestHistories(t *testing.T) {
	for name, c := range map[string]struct {
		with    Option
		prepare func(*executor, *fakegpu.Machine)
		want    []string // what is called
	}{
		"march": {SeparateLaunches(false), func(*executor, *fakegpu.Machine) {}, []string{"LaunchCooperative"}},
		"short lists": {SeparateLaunches(false), func(ex *executor, _ *fakegpu.Machine) { ex.mega.maxBytes = 700 },
			[]string{"LaunchCooperative"}},
		"launches": {SeparateLaunches(true), func(*executor, *fakegpu.Machine) {}, []string{"LaunchKernel"}},
		"refused at last": {SeparateLaunches(false), func(ex *executor, m *fakegpu.Machine) {
			ex.mega.maxBytes = 700
			m.Fail("LaunchCooperative", 20, driver.CooperativeLaunchTooLarge)
		}, []string{"LaunchCooperative", "LaunchKernel"}},
		"none for some ops": {SeparateLaunches(false), func(ex *executor, _ *fakegpu.Machine) { ex.mega.maxThreads = 64 },
			[]string{"LaunchCooperative", "LaunchKernel"}},
	} {
		t.Run(name, func(t *testing.T) {
			d, m := openFake(t, fakegpu.Options{}, false, c.with)
			if err := d.exec.do(func() error { c.prepare(d.exec, m); return nil }); err != nil {
				t.Fatal(err)
			}
			for seed := range uint64(12) {
				want, got := history(cpu.New(), seed), history(d, seed)
				if !slices.Equal(got, want) {
					t.Errorf("seed %d: the GPU read %v, want %v", seed, got[len(got)-1], want[len(want)-1])
				}
			}
			for _, call := range c.want {
				if m.Count(call) == 0 {
					t.Errorf("%s was never called", call)
				}
			}
		})
	}
}

// Ops go in waves by what they touch: readers together, a writer after all before it.
func TestLevels(t *testing.T) {
	var q opQueue
	var a, b dependency
	place := func(accesses ...access) int {
		q.add(&op{accesses: accesses, send: func() error { return nil }})
		for i := range q.levels {
			if len(q.levels[i].single) > 0 && slices.ContainsFunc(q.levels[i].single,
				func(p *op) bool { return slices.Equal(p.accesses, accesses) }) {
				q.levels[i].single = nil
				return i + 1
			}
		}
		return 0
	}
	for i, c := range []struct {
		touches []access
		want    int
	}{
		{[]access{writes(&a)}, 1}, {[]access{writes(&b)}, 1}, {[]access{reads(&a)},
			2}, {[]access{reads(&a), writes(&b)}, 2}, {[]access{writes(&a)}, 3},
		{[]access{reads(&a), reads(&b)}, 4}, {[]access{reads(&b)}, 3}, {[]access{writes(&b)}, 5},
	} {
		if got := place(c.touches...); got != c.want {
			t.Errorf("op %d goes in wave %d, want %d", i, got, c.want)
		}
	}
}

// Combinations of several agents go in one launch, with coefficients of their own, as those of
// agents who have other neighbours.
func TestCombineTogether(t *testing.T) {
	const agents, n = 9, 40
	d, m := openFake(t, fakegpu.Options{EventDelay: 20 * time.Millisecond}, false)
	host := cpu.New()
	play := func(d device.Device) (all [][]float32) {
		var own, other []device.Vector
		for i := range agents {
			x, y, v := d.NewVector(n), d.NewVector(n), make([]float32, n)
			for j := range v {
				v[j] = float32(i*n + j)
			}
			d.Write(x, v)
			d.Write(y, v)
			own, other = append(own, x), append(other, y)
		}
		for i := range agents {
			w := 1 / float64(i+2)
			d.Combine(own[i], device.Term{A: 1 - w, V: own[i]}, device.Term{A: w, V: other[(i+1)%agents]})
		}
		for i := range agents {
			v := make([]float32, n)
			d.Read(v, own[i])
			all = append(all, v)
		}
		return all
	}
	want := play(host)
	got := play(d)
	for i := range want {
		if !slices.Equal(got[i], want[i]) {
			t.Errorf("agent %d has %v, want %v", i, got[i][:3], want[i][:3])
		}
	}
	if n := m.Count("LaunchKernel"); n > agents/2 {
		t.Errorf("%d launches for %d combinations that wait together", n, agents)
	}
}

// together is a joint that goes with all of its kind, in every eighth wave.
type batchAll struct{ sent *[][]*op }

func (c batchAll) batchesWith(batchable) bool { return true }
func (c batchAll) levelStride() int           { return levelsPerIteration }
func (c batchAll) sendBatch(_ *executor, ops []*op) error {
	*c.sent = append(*c.sent, append([]*op(nil), ops...))
	return nil
}

// An agent that has asked for three iterations gets the first of them; who comes then goes with its
// second.
func TestBatchesInLaterIterations(t *testing.T) {
	var sent [][]*op
	var ahead, late dependency
	ex := &executor{}
	ask := func(on *dependency) *op {
		p := &op{accesses: []access{writes(on)}, batch: batchAll{&sent}}
		ex.ops.add(p)
		return p
	}
	first, second, third := ask(&ahead), ask(&ahead), ask(&ahead)
	ex.sendIteration()
	other := ask(&late)
	for ex.ops.count > 0 {
		ex.sendIteration()
	}
	want := [][]*op{{first}, {second, other}, {third}}
	if !slices.EqualFunc(sent, want, slices.Equal) {
		t.Errorf("sent %v, want %v", sent, want)
	}
}
