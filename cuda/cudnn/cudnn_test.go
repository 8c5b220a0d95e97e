package cudnn

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"fspda/cuda/dynlib"
)

// The library of each CUDA version exports every function of API.
func TestBind(t *testing.T) {
	for _, major := range []int{12, 13} {
		t.Run(fmt.Sprint(major), func(t *testing.T) {
			h, err := dynlib.System().Open(dynlib.CUDNN(major, 90))
			if err != nil {
				t.Skipf("%v (set %s to a folder with it)", err, dynlib.PathVariable)
			}
			a, err := Bind(h)
			if err != nil {
				t.Fatal(err)
			}
			if v := a.Version(); v < 90000 {
				t.Errorf("version %d", v)
			}
			if got := a.check(3000, "a call"); got == nil || !strings.Contains(got.Error(), "NOT_SUPPORTED") {
				t.Errorf("error %v", got)
			}
			describeShapes(t, a)
		})
	}
}

// describeShapes describes convolutions to the library, which needs no GPU.
func describeShapes(t *testing.T, a *API) {
	for _, s := range []Shape{{N: 2, H: 8, W: 9, C: 4, K: 8, R: 3, S: 3, Stride: 2, Pad: 1},
		{N: 128, H: 224, W: 224, C: 3, K: 64, R: 7, S: 7, Stride: 2, Pad: 3}} {
		c := &Conv{h: &Handle{api: a}, shape: s}
		if err := c.describe(Float32, FMA); err != nil {
			t.Error(err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	c := &Conv{h: &Handle{api: a}, shape: Shape{N: -1, H: 1, W: 1, C: 1, K: 1, R: 1, S: 1, Stride: 1}}
	if err := c.describe(Float32, FMA); err == nil || !strings.Contains(err.Error(), "-1 images") {
		t.Errorf("an invalid shape: %v", err)
	}
	_ = c.Close()
}

// Perf has the memory layout of the C struct.
func TestPerf(t *testing.T) {
	if s, at := unsafe.Sizeof(Perf{}), unsafe.Offsetof(Perf{}.Deterministic); s != 48 || at != 24 {
		t.Errorf("%d bytes, deterministic at %d; want 48 and 24", s, at)
	}
}

func TestShape(t *testing.T) {
	s := Shape{N: 1, H: 224, W: 225, C: 3, K: 64, R: 7, S: 7, Stride: 2, Pad: 3}
	if s.P() != 112 || s.Q() != 113 {
		t.Errorf("output of %d×%d", s.P(), s.Q())
	}
}
