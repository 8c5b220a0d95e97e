package megakernel

import (
	"math"
	"testing"
)

// The clocks of multiprocessors differ, also in their rates, and blocks leave barriers at slightly
// different times. The time of a phase is divided into the work of the last block and the barrier
// all the same.
func TestProfileAlignsClocks(t *testing.T) {
	const blocks = 3
	p := &profile{blocks: blocks, kHz: 1000, phases: [][]string{{"head"}, {"gather", "gather"}, {}}}
	clocks := [blocks]uint32{5, 1 << 31, math.MaxUint32 - 40} // the last one wraps
	late := [][blocks]uint32{{0, 20, 10}, {20, 10, 0}, {10, 0, 20}}
	times := make([]uint32, (1+2*3+2*3)*blocks*warps)
	for b := range blocks {
		for w := range warps {
			note := func(point int, at uint32) { times[(point*blocks+b)*warps+w] = clocks[b] + at }
			note(0, 0)
			for i := range p.phases {
				begin := uint32(100+1000*i) + late[i][b]
				note(1+2*i, begin)
				note(2+2*i, begin+uint32(100*(b+1)))
			}
			if b == 2 {
				note(7, 120)
				note(8, 370)
			}
		}
	}
	p.add(times)
	for i, want := range []phaseTimes{{whole: 1000, busiest: 300, least: 100, last: 10, longest: []float64{250}},
		{whole: 1000, busiest: 290, least: 100, last: 10, longest: []float64{0}}} {
		got := p.all[i]
		if got.whole != want.whole || got.busiest != want.busiest || got.least != want.least ||
			got.last != want.last || got.longest[0] != want.longest[0] {
			t.Errorf("phase %d: %+v, want %+v", i, *got, want)
		}
	}
}

// Rates of clocks that differ do not change the times of phases.
func TestProfileAlignsRates(t *testing.T) {
	rates := []float64{0.75, 1, 1.25}
	blocks, phases := len(rates), 5
	p := &profile{blocks: blocks, kHz: 1000}
	times := make([]uint32, (1+4*phases)*blocks*warps)
	for i := range phases {
		p.phases = append(p.phases, []string{"head"})
		for w := range blocks * warps {
			note := func(point, at int) {
				times[point*blocks*warps+w] = uint32(1000*(w/warps)) + uint32(rates[w/warps]*float64(at))
			}
			note(1+2*i, 1000*i)
			note(2+2*i, 1000*i+400)
			note(1+2*phases+2*i, 1000*i+100)
			note(2+2*phases+2*i, 1000*i+300)
		}
	}
	p.add(times)
	near := func(a, b float64) bool { return math.Abs(a-b) < 1e-6 }
	if got := p.all[0]; !near(got.whole, 4*1000+400) || !near(got.busiest, 5*400) || !near(got.least, 5*400) ||
		!near(got.last, 0) || !near(got.longest[0], 5*200) || !near(p.slowest, 0.75) || !near(p.fastest, 1.25) {
		t.Errorf("%+v, rates %v to %v; want 5 phases of 1000, 400 of them busy, 200 of them in a kernel",
			*p.all[0], p.slowest, p.fastest)
	}
}
