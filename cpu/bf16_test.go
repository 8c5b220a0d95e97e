package cpu

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"testing"

	"fspda/cpu/isa"
	"fspda/cpu/tile"
	"fspda/device/devicetest"
	"fspda/internal/testing/kerneltest"
)

// roundBF16 rounds numbers to bfloat16.
func roundBF16(v []float32) {
	for i, x := range v {
		v[i] = math.Float32frombits(math.Float32bits(tile.Pair(x, x)) & 0xffff0000)
	}
}

// Every kernel whose factors are rounded is within the bounds of 16-bit arithmetic. FSPDA_LONG=1
// computes all shapes also on three threads and where products are loops in Go, else every fourth.
func TestBF16Kernels(t *testing.T) {
	bounds := devicetest.HalfPrecision{Round: roundBF16, Unit: 0x1p-8, Smallest: 0x1p-120}
	for _, threads := range []int{1, 3} {
		d := New(BF16(), Threads(threads))
		if os.Getenv("FSPDA_LONG") == "" && (threads > 1 || !FastBF16()) {
			bounds.Every = 4
		}
		for k := range roundingKernels {
			devicetest.CheckHalfPrecision(t, d, k, bounds)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Results with BF16 are bit-identical on any instruction set, and for every number of threads.
// FSPDA_LONG=1 computes all shapes for all numbers of threads, else every fourth for one of them in
// turn.
func TestBF16Bits(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
	rounded, least, few := 0, 40, os.Getenv("FSPDA_LONG") == "" // all products, and most convolutions
	if few {
		least = 9
	}
	for i, code := range divisible() {
		if few && i%4 > 0 {
			continue
		}
		want := runCode(t, New(BF16()), code)
		for k, threads := range []int{2, 3, 7} {
			if few && k != i/4%3 {
				continue
			}
			d := New(BF16(), Threads(threads))
			kerneltest.Compare(t, fmt.Sprintf("%s on %d threads", code.Name, threads), runCode(t, d, code), want)
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		}
		if isa.Assembly() {
			isa.With(isa.Go, func() {
				kerneltest.Compare(t, code.Name+" in Go", runCode(t, New(BF16()), code), want)
			})
		}
		if _, rounds := roundingKernels[code.Calls[0].Kernel]; !slices.Equal(runCode(t, New(), code), want) {
			if rounded++; !rounds {
				t.Errorf("%s: the results are not those of float32", code.Name)
			}
		}
	}
	if rounded < least {
		t.Errorf("the factors of %d calls are rounded, want %d", rounded, least)
	}
}

// Products and convolutions on tiles have the bits of their definition, for every number of
// threads. The micro-kernels are a model, so that processors without AMX run the rest of the code.
// FSPDA_LONG=1 computes all shapes, else every sixth.
func TestBF16OnTiles(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
	if !isa.Assembly() {
		t.Skip("without assembly products are not packed")
	}
	tile.WithTileModel(func() {
		for i, code := range divisible() {
			if _, rounds := roundingKernels[code.Calls[0].Kernel]; !rounds || i%6 > 0 && os.Getenv("FSPDA_LONG") == "" {
				continue
			}
			var want []float32
			isa.With(isa.Go, func() { want = runCode(t, New(BF16()), code) })
			for _, threads := range []int{1, 3} {
				d := New(BF16(), Threads(threads))
				kerneltest.Compare(t, fmt.Sprintf("%s on %d threads", code.Name, threads), runCode(t, d, code), want)
				if err := d.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	})
}
