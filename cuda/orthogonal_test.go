package cuda

import (
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"fspda/cuda/driver"
	"fspda/cuda/kernels"
	"fspda/device"
	"fspda/device/devicetest"
	"fspda/internal/rng"
	"fspda/internal/testing/fakegpu"
)

// layers are the matrices of a small network: several of each of two shapes, high and wide.
func layers() (all []device.Orthogonal, n int) {
	n = 5
	for i, shape := range [][2]int{{8, 8}, {8, 24}, {24, 8}, {8, 8}, {24, 8}, {8, 8}, {6, 5}} {
		all = append(all, device.Orthogonal{Block: device.Block{Offset: n, Rows: shape[0], Cols: shape[1]},
			Scale: 0.5 + float64(i)})
		n += shape[0]*shape[1] + i
	}
	return all, n + 3
}

// orthogonalized computes a step of Muon's operations on the vectors of agents, all in the same
// launches.
func orthogonalized(t *testing.T, d *Device, m *fakegpu.Machine, agents []int) (all map[int][]float32, launches int) {
	t.Helper()
	const warm = 1000
	matrices, n := layers()
	ranges := []device.Range{{From: 2, To: 5}, {From: 5, To: 5}, {From: 7, To: n - 1}}
	vectors := map[int][]device.Vector{}
	for _, a := range append(slices.Clone(agents), warm) {
		s := rng.New(uint64(a), "a test of agents")
		for range 4 {
			v := make([]float32, n)
			for i := range v {
				v[i] = float32(math.Abs(s.Norm()))
			}
			x := d.NewVector(n)
			d.Write(x, v)
			vectors[a] = append(vectors[a], x)
		}
	}
	step := func(v []device.Vector) {
		adam := device.Adam{Beta1: 0.9, Rest1: 0.1, Beta2: 0.99, Rest2: 0.01, Scale1: 2, Scale2: 3, Eps: 1e-8}
		d.Do(device.Combine(v[1], device.Term{A: 0.5, V: v[1]}, device.Term{A: 0.25, V: v[0]}).Within(ranges),
			device.Orthogonalize(v[0], matrices...), device.AdamW(adam, v[0], v[1], v[2], v[3]).Within(ranges))
	}
	step(vectors[warm]) // copies the lists of matrices and ranges, which would wait for the executor
	before, release := hold(t, d, m)
	for _, a := range agents {
		step(vectors[a])
	}
	release()
	all = map[int][]float32{}
	for _, a := range agents {
		for _, x := range vectors[a] {
			host := make([]float32, n)
			d.Read(host, x)
			all[a] = append(all[a], host...)
		}
	}
	return all, launched(m) - before
}

// The matrices of all agents share products, and each agent gets the bits that it gets alone, in
// each precision, also where cuBLASLt's algorithms compute one number of matrices only, and where
// it is missing.
func TestOrthogonalizeTogether(t *testing.T) {
	agents := make([]int, kernels.MostEach+3)
	for i := range agents {
		agents[i] = i
	}
	for name, b := range map[string]struct {
		behaviour ltBehaviour
		none      bool
	}{"all": {}, "one number of matrices": {behaviour: ltBehaviour{oneBatch: true}}, "without cuBLASLt": {none: true}} {
		for _, precision := range []Precision{FP32, TF32, BF16, FP16} {
			t.Run(fmt.Sprint(name, " ", precision), func(t *testing.T) {
				opened := func() (*Device, *fakegpu.Machine) {
					m, p := fakeBackend(t, fakegpu.Options{})
					of := p.libraries
					p.libraries = func(props driver.Properties) (libraries, error) {
						l, err := of(props)
						if l.lt = newFakeLt(m, b.behaviour); b.none {
							l.lt = nil
						}
						return l, err
					}
					d, err := open(p, WithPrecision(precision), SeparateLaunches(true))
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() {
						if err := d.Close(); err != nil {
							t.Error(err)
						}
					})
					return d, m
				}
				d, m := opened()
				together, launches := orthogonalized(t, d, m, agents)
				for _, a := range []int{0, 1, len(agents) - 1} {
					d, m := opened()
					if alone, _ := orthogonalized(t, d, m, []int{a}); !slices.Equal(alone[a], together[a]) {
						t.Errorf("agent %d has other numbers alone", a)
					}
				}
				// For each of two parts of the agents: two operations within ranges, and of each of three
				// shapes two kernels at the start and one at the end; sums for the one whose products cuBLASLt
				// does not compute.
				if want := 2 * (2 + 3*(2+1) + 2*device.OrthogonalSteps); name == "all" && launches != want {
					t.Errorf("%d launches of kernels for %d agents, want %d", launches, len(agents), want)
				}
			})
		}
	}
}

// Matrices of many shapes are within the bounds of each precision. FSPDA_LONG=1 has all three, else
// bfloat16 alone.
func TestOrthogonalizePrecisions(t *testing.T) {
	precisions := []Precision{BF16}
	if os.Getenv("FSPDA_LONG") != "" {
		precisions = append(precisions, TF32, FP16)
	}
	for _, precision := range precisions {
		for _, c := range devicetest.Checks() {
			if c.Name == "orthogonalize" {
				d, _ := openFake(t, fakegpu.Options{}, false, WithPrecision(precision))
				c.Run(t, d)
			}
		}
	}
}
