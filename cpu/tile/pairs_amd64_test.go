//go:build !noasm && !fspda_noasm

package tile

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"fspda/cpu/isa"
	"fspda/internal/testing/kerneltest"
)

// pairSetsOfProcessor returns all micro-kernels of pairs that can run, those too that are not in
// use.
func pairSetsOfProcessor() (all []*Set) {
	if isa.BF16() {
		all = append(all, &avx512BF16)
	}
	if isa.AMX() {
		all = append(all, amx())
	}
	return all
}

// Micro-kernels give the same bits while goroutines are preempted and garbage is collected: what
// they hold in registers and tiles is neither lost nor mixed with what others hold.
func TestPairTilesUnderLoad(t *testing.T) {
	for which, s := range testedPairSets(t) {
		const k = 512
		height, end := len(s.Tiles), time.Now().Add(500*time.Millisecond)
		var wait sync.WaitGroup
		for worker := range 2 * runtime.GOMAXPROCS(0) {
			wait.Go(func() {
				name := fmt.Sprint(worker)
				a, b := kerneltest.Noise("a"+name, height*k), kerneltest.Noise("b"+name, 2*s.Lanes*k)
				for i := range a {
					a[i] = Pair(a[i], a[i]+1)
				}
				for i := range b {
					b[i] = Pair(b[i], b[i]+1)
				}
				var first []float32
				for time.Now().Before(end) {
					c, half := make([]float32, height*2*s.Lanes), (height+1)/2
					args := Args{A: &a[0], A2: &a[half*k], ARow: 4 * k, ACol: 4, B: &b[0], BRow: 8 * s.Lanes, K: k,
						Runs: 1, C: &c[0], C2: &c[half*2*s.Lanes], CRow: 8 * s.Lanes, Last: s.Lanes, Alpha: 1}
					s.Tiles[height-1][1](&args)
					if first == nil {
						first = c
					} else if !slices.Equal(c, first) {
						t.Errorf("set %d: other bits", which)
						return
					}
				}
			})
		}
		for time.Now().Before(end) {
			runtime.GC()
		}
		wait.Wait()
	}
}
