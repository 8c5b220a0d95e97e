package conv

import (
	"fmt"
	"testing"

	"fspda/cpu/isa"
	"fspda/cpu/kernel"
	"fspda/device"
	"fspda/device/signature"
	"fspda/internal/testing/kerneltest"
)

// withSets runs f with each instruction set of the processor.
func withSets(f func(name string)) {
	for _, i := range isa.Available() {
		isa.With(i, func() { f(i.String()) })
	}
}

// convTwins compares every implementation with the one in Go: each bit of the output, and each word
// around it. The operands lie skip words from a cache line.
func convTwins(t *testing.T, dims []int, skip int) {
	t.Helper()
	const guard = 7
	for _, k := range directions {
		outs := map[string][]float32{}
		withSets(func(name string) {
			c := newConvCall(k, dims)
			for i, v := range c.in {
				c.in[i] = append(kernel.Aligned(skip + len(v))[:skip:skip+len(v)], v...)[skip:]
			}
			n := len(c.out[0])
			out := kernel.Aligned(skip + n + guard)
			for i := range out {
				out[i] = -3
			}
			c.out[0] = out[skip:][:n]
			if err := c.run(); err != nil {
				t.Fatal(err)
			}
			outs[name] = out
		})
		for name, got := range outs {
			for i, want := range outs["go"] {
				if !kerneltest.Same(got[i], want) || (i < skip || i >= len(got)-guard) && got[i] != -3 {
					t.Fatalf("%s %v, %d words in, %s: word %d of %d is %x, want %x", k, dims, skip, name, i-skip,
						len(got)-skip-guard, got[i], want)
				}
			}
		}
	}
}

func TestConvTwins(t *testing.T) {
	for i, dims := range convDims {
		if work := dims[1] * dims[2] * dims[3] * dims[4]; kerneltest.Race && work > 1e5 {
			continue
		}
		convTwins(t, dims, i%5)
	}
}

// Every width of an image, of its strips and of the channels.
func TestConvTwinsOfEveryWidth(t *testing.T) {
	for n := 1; n <= 33; n++ {
		convTwins(t, []int{1 + n%3, 1 + n%4, n, 1 + n%5, 1 + n%3, 1 + n%2, 1, 1, 0}, 0)
		convTwins(t, []int{1, 3, 1 + n%9, n, 34 - n, 3, 3, 1 + n%2, 1}, 0)
		convTwins(t, []int{1, 2, n, 2, 17, 2, 3, 1, 1}, 0)
	}
}

func TestConvEveryAlignment(t *testing.T) {
	for skip := range 16 {
		convTwins(t, []int{1, 4, 5, 9, 19, 3, 3, 1, 1}, skip)
		convTwins(t, []int{1, 5, 7, 3, 19, 3, 3, 2, 1}, skip)
		convTwins(t, []int{2, 3, 2, 18, 5, 1, 1, 1, 0}, skip)
	}
}

func FuzzConv(f *testing.F) {
	for _, dims := range convDims[:12] {
		b := make([]byte, len(dims))
		for i, d := range dims {
			b[i] = byte(d)
		}
		f.Add(b, uint8(0))
	}
	f.Fuzz(func(t *testing.T, b []byte, skip uint8) {
		if len(b) != 9 {
			t.Skip("not nine dimensions")
		}
		dims, work := make([]int, 9), 1
		for i, most := range []int{4, 64, 64, 255, 255, 8, 8, 6, 8} {
			dims[i] = int(b[i])%most + 1
			if i < 7 {
				work *= dims[i]
			}
		}
		dims[8]--
		if _, err := signature.Find(&device.Call{Kernel: directions[0], Dims: dims}); work > 3e6 || err != nil {
			t.Skip("too much for one case, or no convolution")
		}
		convTwins(t, dims, int(skip)%16)
	})
}

// The scratch memory is sufficient for the tiles of every instruction set.
func TestConvScratchIsTheSameForEverySet(t *testing.T) {
	for _, dims := range convDims {
		for _, k := range directions {
			sizes := map[string]int{}
			withSets(func(name string) {
				if name != "go" {
					sizes[name] = Kernels.Scratch(&newConvCall(k, dims).Call, 1)
				}
			})
			for _, n := range sizes {
				if n != sizes[isa.Active.String()] {
					t.Errorf("%s %v: %v numbers", k, dims, fmt.Sprint(sizes))
				}
			}
		}
	}
}
