package cudnn

import (
	"errors"
	"os"
	"testing"
)

// attentionShapes are of GPT-2, of wide and narrow heads, and of windows that are no multiple of a
// tile.
var attentionShapes = []AttentionShape{{16, 1024, 12, 64}, {2, 1024, 8, 128}, {12, 64, 4, 32}, {3, 100, 2, 64}}

// The real library accepts the graphs of attention and of its gradient. Where it finds a driver, it
// offers engines and makes plans of them: they compile kernels, which needs libcuda.so.1. A library
// of that name with cuLibraryLoadData and cuLibraryGetKernel that do nothing is sufficient.
func TestDevicelessAttention(t *testing.T) {
	api := installed(t)
	for _, c := range gpus {
		if c.version < 800 {
			continue
		}
		h := deviceless(t, api, c)
		for _, of := range []Type{BFloat16, Float16} {
			for i, s := range attentionShapes {
				if i > 0 && os.Getenv("FSPDA_LONG") == "" {
					continue
				}
				for _, d := range []Direction{Forward, GradX} {
					checkAttentionPlans(t, c, &Attention{h: h, shape: s, direction: d, of: of})
				}
			}
		}
	}
}

func checkAttentionPlans(t *testing.T, c gpuProperties, a *Attention) {
	f, _, err := a.graph()
	if err := errors.Join(err, f.close()); err != nil {
		t.Fatalf("%v, direction %d: %v", a.shape, a.direction, err)
	}
	how := Selection{MaxWorkspace: 2*4*a.shape.Windows*a.shape.T*a.shape.Heads*(a.shape.Width+1) + 1<<20}
	made := 0
	engines := a.engines(how)
	for _, e := range engines {
		if err := a.makePlan(e, how); err != nil {
			t.Logf("%v, direction %d: %v", a.shape, a.direction, err)
			continue
		}
		made++
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Logf("%v, %v, direction %d, type %d: %d engines, %d plans", c, a.shape, a.direction, a.of, len(engines), made)
	if len(engines) > 0 && made == 0 {
		t.Errorf("%v, %v, direction %d, type %d: no plan can be made", c, a.shape, a.direction, a.of)
	}
}
