package cuda

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"fspda/cpu"
	"fspda/cuda/driver"
	"fspda/device"
	"fspda/internal/rng"
	"fspda/internal/testing/fakegpu"
)

// history runs random operations on a few vectors, each of which depends on others, and returns all
// that was read.
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
			d.Do(device.Combine(v, terms...))
		case 4:
			d.Do(device.Gather(few[s.IntN(2)], v, x))
		case 5:
			d.Do(device.AddDiff(few[0], few[1], x, device.Term{A: 0.5, V: v}, device.Term{A: -0.25, V: other(v)}))
		case 6:
			d.Do(device.AddDiffs(term(), v, []device.Term{term(), term()}, device.Term{A: 0.25, V: other(v)}))
		case 7:
			d.Do(device.ScatterAdd(v, device.SparseTerm{A: 0.5, V: few[0], Idx: x},
				device.SparseTerm{A: 0.5, V: few[1], Idx: x}))
		case 8:
			if s.IntN(4) > 0 {
				continue
			}
			d.Read(host, v)
			seen = append(seen, fmt.Sprint(host, device.InnerProduct(d, v, any())))
		}
	}
	for _, v := range all {
		d.Read(host, v)
		seen = append(seen, fmt.Sprint(host))
	}
	return seen
}

// Queued operations have the results of running them one after the other. FSPDA_LONG=1 runs twelve
// sequences, else five.
func TestHistories(t *testing.T) {
	seeds := uint64(5)
	if os.Getenv("FSPDA_LONG") != "" {
		seeds = 12
	}
	for name, c := range map[string]struct {
		with    Option
		prepare func(*Device, *fakegpu.Machine)
		want    []string // driver functions that are called
	}{
		"megakernel": {SeparateLaunches(false), func(*Device, *fakegpu.Machine) {},
			[]string{"LaunchCooperative"}},
		"short lists": {SeparateLaunches(false), func(d *Device, _ *fakegpu.Machine) {
			d.mega.MaxBytes = 700
		}, []string{"LaunchCooperative"}},
		"launches": {SeparateLaunches(true), func(*Device, *fakegpu.Machine) {}, []string{"LaunchKernel"}},
		"refused at last": {SeparateLaunches(false), func(d *Device, m *fakegpu.Machine) {
			d.mega.MaxBytes = 700
			m.Fail("LaunchCooperative", 20, driver.CooperativeLaunchTooLarge)
		}, []string{"LaunchCooperative", "LaunchKernel"}},
		"none for some ops": {SeparateLaunches(false), func(d *Device, _ *fakegpu.Machine) {
			d.mega.MaxThreads = 64
		}, []string{"LaunchCooperative", "LaunchKernel"}},
	} {
		t.Run(name, func(t *testing.T) {
			d, m := openFake(t, fakegpu.Options{}, false, c.with)
			if err := d.exec.Do(func() error { c.prepare(d, m); return nil }); err != nil {
				t.Fatal(err)
			}
			for seed := range seeds {
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

// hold returns once the executor waits with nothing queued or sent, and how many kernels it has
// launched until then. Operations gather in its inbox until release.
func hold(t *testing.T, d *Device, m *fakegpu.Machine) (launches int, release func()) {
	if err := d.exec.DoInOrder(d.exec.Synchronize); err != nil {
		t.Fatal(err)
	}
	waits, held := make(chan struct{}), make(chan struct{})
	go d.exec.Do(func() error { close(waits); <-held; return nil })
	<-waits
	return launched(m), func() { close(held) }
}

func launched(m *fakegpu.Machine) int { return m.Count("LaunchKernel") + m.Count("LaunchCooperative") }

// Combinations of several agents share a launch, with coefficients of their own, as agents with
// different neighbours have.
func TestCombineBatched(t *testing.T) {
	const agents, n = 9, 40
	d, m := openFake(t, fakegpu.Options{}, false)
	runOps := func(d device.Device, hold func() (release func())) (all [][]float32) {
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
		release := hold()
		for i := range agents {
			w := 1 / float64(i+2)
			d.Do(device.Combine(own[i], device.Term{A: 1 - w, V: own[i]}, device.Term{A: w, V: other[(i+1)%agents]}))
		}
		release()
		for i := range agents {
			v := make([]float32, n)
			d.Read(v, own[i])
			all = append(all, v)
		}
		return all
	}
	want := runOps(cpu.New(), func() func() { return func() {} })
	before := 0
	got := runOps(d, func() (release func()) { before, release = hold(t, d, m); return release })
	for i := range want {
		if !slices.Equal(got[i], want[i]) {
			t.Errorf("agent %d has %v, want %v", i, got[i][:3], want[i][:3])
		}
	}
	if n := launched(m) - before; n != 1 {
		t.Errorf("%d launches for %d combinations that wait together; want 1", n, agents)
	}
}

// AdamW of agents in the same step shares a launch, in the megakernel and without it, and has the
// bits of the CPU. An agent in another step has its own.
func TestAdamWBatched(t *testing.T) {
	const agents, n = 19, 300
	runOps := func(d device.Device, hold func() (release func())) (all [][]float32) {
		vectors := make([][4]device.Vector, agents)
		for i := range vectors {
			for k := range vectors[i] {
				vectors[i][k] = d.NewVector(n)
				v := make([]float32, n)
				for j := range v {
					v[j] = float32((i+3*k+j)%17) / 8
				}
				d.Write(vectors[i][k], v)
			}
		}
		release := hold()
		for i, v := range vectors {
			a := device.Adam{Beta1: 0.9, Rest1: 0.1, Beta2: 0.99, Rest2: 0.01, Scale1: 0.1, Scale2: 2, Eps: 1e-8,
				Decay: 0.01}
			if i == 0 {
				a.Scale1 = 0.2
			}
			d.Do(device.AdamW(a, v[0], v[1], v[2], v[3]))
		}
		release()
		for _, v := range vectors {
			for _, x := range v {
				host := make([]float32, n)
				d.Read(host, x)
				all = append(all, host)
			}
		}
		return all
	}
	want := runOps(cpu.New(), func() func() { return func() {} })
	for call, c := range map[string]struct {
		separate bool
		want     int
	}{"LaunchKernel": {true, 3}, "LaunchCooperative": {false, 1}} {
		d, m := openFake(t, fakegpu.Options{}, false, SeparateLaunches(c.separate))
		before := 0
		got := runOps(d, func() (release func()) { before, release = hold(t, d, m); return release })
		for i := range want {
			if !slices.Equal(got[i], want[i]) {
				t.Errorf("%s: vector %d of agent %d is %v, want %v", call, i%4, i/4, got[i][:3], want[i][:3])
			}
		}
		n := launched(m) - before
		if n != c.want || m.Count(call) < c.want {
			t.Errorf("%d launches for the AdamW of %d agents, of which one is in another step; want %d of %s",
				n, agents, c.want, call)
		}
	}
}
