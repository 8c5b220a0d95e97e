package norm

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"testing"

	"fspda/cpu/isa"
	"fspda/cpu/kernel"
	"fspda/device"
	"fspda/device/signature"
	"fspda/internal/rng"
	"fspda/internal/testing/kerneltest"
)

var groupNames = []device.Kernel{device.GroupNorm, device.GroupNormReLU, device.GroupNormAddReLU,
	device.GroupNormGrad, device.GroupNormReLUGrad, device.GroupNormAddReLUGrad, device.EvoNorm, device.EvoNormGrad}

// groupCase returns operands of a kernel for dims n m c g. Variances are positive.
func groupCase(k device.Kernel, dims []int, skip, odd int) *kernel.Args {
	o := &kernel.Args{Dims: dims, Attr: 1e-3}
	s := signature.Of(k)
	for i, shape := range s.In {
		v := numbersAt(fmt.Sprint(k, i), s.Size(shape, dims), skip, odd)
		if i == len(s.In)-1 && shape == "ng" {
			for j := range v {
				v[j] = 0.1 + float32(math.Abs(float64(v[j])))
			}
		}
		o.In = append(o.In, v)
	}
	for i, shape := range s.Out {
		o.Out = append(o.Out, numbersAt(fmt.Sprint("out", i), s.Size(shape, dims), skip, 0))
	}
	return o
}

func runGroup(t testing.TB, k device.Kernel, o *kernel.Args) {
	t.Helper()
	if err := GroupKernels[k].Run(o); err != nil {
		t.Fatal(err)
	}
}

// One and several threads, and all instruction sets, give the same bits, and nothing is written
// around the outputs.
func TestGroupNormBits(t *testing.T) {
	team := kernel.NewTeam(3)
	defer team.Stop()
	for i, dims := range [][]int{{1, 1, 1, 1}, {3, 5, 6, 3}, {2, 600, 5, 1}, {7, 64, 32, 2}, {5, 81, 33, 11},
		{2, 4, 1040, 2}, {9, 256, 16, 16}, {40, 49, 64, 2}} {
		for _, k := range groupNames {
			for _, odd := range []int{0, 7} {
				want := groupCase(k, dims, i, odd)
				isa.With(isa.Go, func() { runGroup(t, k, want) })
				for _, set := range isa.Available() {
					for _, workers := range []*kernel.Workers{nil, {Team: team}} {
						got := groupCase(k, dims, i, odd)
						got.Workers = workers
						isa.With(set, func() { runGroup(t, k, got) })
						for j := range want.Out {
							what := fmt.Sprint(set, " ", k, dims, ", output ", j, ", helpers: ", workers != nil)
							kerneltest.Compare(t, what, around(got.Out[j]), around(want.Out[j]))
						}
					}
				}
			}
		}
	}
}

// definedGroupNorm is the forward pass as defined in group.go, number by number, for images of at
// most blockRows pixels.
func definedGroupNorm(o *kernel.Args, activation int) []float32 {
	n, m, c, width := o.Dims[0], o.Dims[1], o.Dims[2], o.Dims[2]/o.Dims[3]
	y := make([]float32, n*m*c)
	for image := range n {
		at := func(i, j int) int { return (image*m+i)*c + j }
		for g := range o.Dims[3] {
			s, s1, s2, numbers := float64(o.In[0][at(0, g*width)]), 0.0, 0.0, float64(m*width)
			for j := g * width; j < (g+1)*width; j++ {
				c1, c2 := 0.0, 0.0
				for i := range m {
					d := float64(o.In[0][at(i, j)]) - s
					c1 += d
					c2 = math.FMA(d, d, c2)
				}
				s1, s2 = s1+c1, s2+c2
			}
			d := s1 / numbers
			mean, variance := s+d, max((s2-float64(s1*d))/numbers, 0)
			for j := g * width; j < (g+1)*width; j++ {
				k := float64(o.In[1][j]) / math.Sqrt(variance+o.Attr)
				shift := float32(float64(o.In[2][j]) - float64((mean-float64(float32(mean)))*k))
				for i := range m {
					v := float32(float32(o.In[0][at(i, j)]-float32(mean))*float32(k)) + shift
					if activation == withAddReLU {
						v += o.In[3][at(i, j)]
					}
					if activation != plain && v <= 0 {
						v = 0
					}
					y[at(i, j)] = v
				}
			}
		}
	}
	return y
}

func TestGroupNormIsDefined(t *testing.T) {
	for activation, k := range groupNames[:3] {
		for _, dims := range [][]int{{3, 5, 6, 3}, {2, 500, 5, 1}, {2, 9, 34, 17}} {
			o := groupCase(k, dims, 0, 0)
			runGroup(t, k, o)
			kerneltest.Compare(t, fmt.Sprint(k, dims), o.Out[0], definedGroupNorm(o, activation))
		}
	}
}

// One image with a group for each channel is batch norm.
func TestGroupNormOfOneImageIsBatchNorm(t *testing.T) {
	for activation := range 3 {
		o := groupCase(groupNames[activation], []int{1, 70, 30, 30}, 0, 0)
		runGroup(t, groupNames[activation], o)
		b := &kernel.Args{Dims: []int{70, 30}, Attr: o.Attr, In: o.In, Out: [][]float32{make([]float32, 2100),
			make([]float32, 30), make([]float32, 30)}}
		run(t, forwardNorms[activation], b)
		for i := range b.Out {
			kerneltest.Compare(t, fmt.Sprint(groupNames[activation], ", output ", i), o.Out[i], b.Out[i])
		}
	}
}

func TestGroupNormAllocatesNothing(t *testing.T) {
	if kerneltest.Race {
		t.Skip("the race detector makes pools drop values")
	}
	for _, k := range groupNames {
		o := groupCase(k, []int{3, 49, 32, 2}, 0, 0)
		if n := testing.AllocsPerRun(20, func() { runGroup(t, k, o) }); n > 0 {
			t.Errorf("%s allocates %v times", k, n)
		}
	}
}

// The kernels give the same bits for given operands on every machine.
func TestGroupNormBitsEverywhere(t *testing.T) {
	hash := fnv.New64a()
	for _, k := range groupNames {
		o := groupCase(k, []int{3, 70, 36, 2}, 0, 0)
		s := rng.New(9, "bits")
		for i, v := range o.In {
			for j := range v {
				v[j] = s.Float32()
				if i == 0 {
					v[j] = 2*v[j] - 1
				}
			}
		}
		runGroup(t, k, o)
		for _, v := range o.Out {
			for _, x := range v {
				binary.Write(hash, binary.LittleEndian, x)
			}
		}
	}
	if got, want := fmt.Sprintf("%016x", hash.Sum64()), "87c876ff2cf9ad05"; got != want {
		t.Errorf("hash of all outputs %s, want %s", got, want)
	}
}

func benchGroup(b *testing.B, k device.Kernel) {
	o := groupCase(k, []int{32, 1024, 16, 2}, 0, 0)
	b.SetBytes(int64(4 * len(o.In[0])))
	for b.Loop() {
		runGroup(b, k, o)
	}
}

func BenchmarkGroupNormReLU(b *testing.B)     { benchGroup(b, device.GroupNormReLU) }
func BenchmarkGroupNormReLUGrad(b *testing.B) { benchGroup(b, device.GroupNormReLUGrad) }
func BenchmarkEvoNorm(b *testing.B)           { benchGroup(b, device.EvoNorm) }
func BenchmarkEvoNormGrad(b *testing.B)       { benchGroup(b, device.EvoNormGrad) }
