package cuda

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"
	"time"
	"unsafe"

	"fspda/cuda/cublas"
	"fspda/cuda/cudnn"
	"fspda/cuda/driver"
	"fspda/cuda/dynlib"
	"fspda/cuda/executor"
	"fspda/cuda/kernels"
	"fspda/cuda/nvrtc"
	"fspda/dist"
	"fspda/internal/testing/fakecudnn"
	"fspda/internal/testing/fakegpu"
	"fspda/internal/testing/hostrun"
)

// openFake opens a fake GPU in host memory, on which kernels run from their own source and NVIDIA's
// libraries are loops. It skips the test where there is no C++ compiler.
func openFake(t testing.TB, o fakegpu.Options, inline bool, options ...Option) (*Device, *fakegpu.Machine) {
	t.Helper()
	m, p := fakeBackend(t, o)
	p.inline = inline
	d, err := open(p, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
		if m.LossCause() != nil {
			t.Errorf("the GPU was lost: %v", m.LossCause())
		} else if errors.Is(d.Err(), executor.ErrClosed) {
			m.CheckLeaks(t)
		}
	})
	return d, m
}

func fakeBackend(t testing.TB, o fakegpu.Options) (*fakegpu.Machine, backend) {
	t.Helper()
	host, err := hostrun.Open()
	if _, ok := errors.AsType[*dynlib.Error](err); errors.Is(err, hostrun.ErrNoCompiler) || ok && !dynlib.Supported {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	m := fakegpu.New(o)
	byName := map[string]*kernels.Kernel{}
	for _, k := range kernels.All() {
		byName[k.Name] = k
	}
	m.SetKernels(func(name string) (int, bool) { k := byName[name]; return len(k.Params), k != nil },
		func(l fakegpu.Launch) error {
			k := byName[l.Kernel]
			for i, p := range k.Params {
				if p.Kind == kernels.Pointer && l.Args[i] != 0 {
					if err := m.CheckAccess(driver.Pointer(l.Args[i]), 1); err != nil {
						return fmt.Errorf("%s: %w", p.Name, err)
					}
				}
			}
			return host.Launch(nil, kernels.Call{Kernel: k, Launch: kernels.Launch{Grid: l.Grid, Block: l.Block,
				Shared: l.Shared, Cooperative: l.Cooperative}, Args: l.Args})
		})
	return m, backendOn(m)
}

// backendOn returns the backend of a device on a machine.
func backendOn(m *fakegpu.Machine) backend { return backendWith(m, newFakeDNN(m)) }

// backendWith is backendOn with a given cuDNN. Engines that are timed later are faster, so that the
// last of the usable ones is chosen.
func backendWith(m *fakegpu.Machine, n *fakeDNN) backend {
	api := m.API()
	elapsed := api.EventElapsedTime
	api.EventElapsedTime = func(out *float32, from, to driver.Event) driver.Result {
		r := elapsed(out, from, to)
		*out -= 1e-6 * float32(min(n.graph.Executed, 1e5))
		return r
	}
	return backend{api: api, version: 13000, libraries: func(driver.Properties) (libraries, error) {
		cubins := map[string]nvrtc.Binary{}
		for _, k := range kernels.All() {
			cubins[k.Unit] = nvrtc.Binary{Cubin: []byte(k.Unit)}
		}
		return libraries{cubins: cubins, blas: fakeBLAS(m), lt: newFakeLt(m, ltBehaviour{}), dnn: n.api()}, nil
	}}
}

// matrix is n numbers of device memory, as float32; put writes them back, rounded to their type.
type matrix struct {
	v     []float32
	bytes []byte
	as    dist.ValueFormat
}

func matrixAt(m *fakegpu.Machine, at driver.Pointer, n int, e kernels.Element) (matrix, error) {
	b, err := m.Bytes(at, n*e.Size())
	if err != nil {
		return matrix{}, err
	}
	x := matrix{make([]float32, n), b, map[kernels.Element]dist.ValueFormat{kernels.F32: dist.FP32,
		kernels.F16: dist.FP16, kernels.BF16: dist.BF16}[e]}
	x.as.Read(x.v, b)
	return x, nil
}

func (x matrix) put() { x.as.Append(x.bytes[:0], x.v) }

// fakeBLAS is cuBLAS as three loops.
func fakeBLAS(m *fakegpu.Machine) *cublas.API {
	a, stream := &cublas.API{}, driver.Stream(0)
	a.Create = func(out *cublas.Ptr) cublas.Status { *out = 1; return 0 }
	a.Destroy = func(cublas.Ptr) cublas.Status { return 0 }
	a.SetStream = func(_ cublas.Ptr, s driver.Stream) cublas.Status { stream = s; return 0 }
	a.SetWorkspace = func(cublas.Ptr, driver.Pointer, uintptr) cublas.Status { return 0 }
	a.SetMathMode = func(cublas.Ptr, int32) cublas.Status { return 0 }
	a.StatusString = func(s cublas.Status) string { return "fake" }
	element := map[cublas.Type]kernels.Element{cublas.Float32: kernels.F32, cublas.Float16: kernels.F16,
		cublas.BFloat16: kernels.BF16}
	a.GemmEx = func(_ cublas.Ptr, ta, tb, rows, cols, k int32, _ *float32, pa driver.Pointer, of cublas.Type, lda int32,
		pb driver.Pointer, ofB cublas.Type, ldb int32, beta *float32, pc driver.Pointer, ofC cublas.Type, ldc int32,
		_ cublas.Compute, _ int32) cublas.Status {
		add := *beta == 1
		if of != ofB || ofC != of && ofC != cublas.Float32 {
			return 15 // the library has no such product
		}
		return cublas.Status(m.Enqueue(stream, "gemm", func() error {
			extent := func(trans, r, c, ld int32) int { // numbers of a matrix that is stored by columns
				if trans != 0 {
					r, c = c, r
				}
				return int(ld*(c-1) + r)
			}
			x, errA := matrixAt(m, pa, extent(ta, rows, k, lda), element[of])
			y, errB := matrixAt(m, pb, extent(tb, k, cols, ldb), element[of])
			z, errC := matrixAt(m, pc, extent(0, rows, cols, ldc), element[ofC])
			if err := errors.Join(errA, errB, errC); err != nil {
				return err
			}
			a, b := factorOf(x.v, ta != 0, int(lda)), factorOf(y.v, tb != 0, int(ldb))
			for i := range int(rows) {
				for j := range int(cols) {
					sum := a.times(b, i, j, int(k))
					if add {
						sum += float64(z.v[i+int(ldc)*j])
					}
					z.v[i+int(ldc)*j] = float32(sum)
				}
			}
			z.put()
			return nil
		}))
	}
	return a
}

// factor is a matrix, or its transpose: element (i, j) is v[i·down + j·right].
type factor struct {
	v           []float32
	down, right int
}

// factorOf returns a factor of a matrix that is stored by columns.
func factorOf(v []float32, transposed bool, ld int) factor {
	if transposed {
		return factor{v, ld, 1}
	}
	return factor{v, 1, ld}
}

// times returns element (i, j) of the product of a and b, a sum of k terms.
func (a factor) times(b factor, i, j, k int) (sum float64) {
	p, q := i*a.down, j*b.right
	for range k {
		sum += float64(a.v[p]) * float64(b.v[q])
		p, q = p+a.right, q+b.down
	}
	return sum
}

func newFakeDNN(m *fakegpu.Machine) *fakeDNN {
	n := &fakeDNN{m: m, images: map[cudnn.Tensor][4]int32{}, filters: map[cudnn.Filter][4]int32{},
		types: map[uintptr]cudnn.Type{}, windows: map[cudnn.Descriptor][2]int32{}}
	n.graph = n.newGraph()
	return n
}

// api returns cuDNN's convolutions as loops.
func (n *fakeDNN) api() *cudnn.API {
	a := &cudnn.API{}
	a.Version = func() uintptr { return 91002 }
	a.ErrorString = func(s cudnn.Status) string { return "fake" }
	a.Create = func(out *cudnn.Ptr) cudnn.Status { *out = 1; return 0 }
	a.Destroy = func(cudnn.Ptr) cudnn.Status { return n.leaks() }
	a.SetStream = func(_ cudnn.Ptr, s driver.Stream) cudnn.Status { n.stream = s; return 0 }
	a.CreateTensor = func(out *cudnn.Tensor) cudnn.Status { *out = cudnn.Tensor(n.handle()); return 0 }
	a.SetTensor = func(t cudnn.Tensor, format int32, of cudnn.Type, i, c, h, w int32) cudnn.Status {
		n.images[t], n.types[uintptr(t)] = [4]int32{i, h, w, c}, of
		return wrong(format != 1 || t == 0)
	}
	a.DestroyTensor = func(t cudnn.Tensor) cudnn.Status { delete(n.images, t); return 0 }
	a.CreateFilter = func(out *cudnn.Filter) cudnn.Status { *out = cudnn.Filter(n.handle()); return 0 }
	a.SetFilter = func(f cudnn.Filter, of cudnn.Type, format int32, k, c, r, s int32) cudnn.Status {
		n.filters[f], n.types[uintptr(f)] = [4]int32{k, r, s, c}, of
		return wrong(format != 1)
	}
	a.DestroyFilter = func(f cudnn.Filter) cudnn.Status { delete(n.filters, f); return 0 }
	a.CreateConv = func(out *cudnn.Descriptor) cudnn.Status { *out = cudnn.Descriptor(n.handle()); return 0 }
	a.SetConv = func(d cudnn.Descriptor, padH, padW, strideH, strideW, dh, dw, mode int32,
		compute cudnn.Type) cudnn.Status {
		n.windows[d] = [2]int32{strideH, padH}
		return wrong(padH != padW || strideH != strideW || dh != 1 || dw != 1 || mode != 1 || compute != cudnn.Float32)
	}
	a.SetMath = func(cudnn.Descriptor, cudnn.Math) cudnn.Status { return 0 }
	a.DestroyConv = func(d cudnn.Descriptor) cudnn.Status { delete(n.windows, d); return 0 }
	perf := func(got *int32, all *cudnn.Perf) cudnn.Status { // the first does not exist
		list := unsafe.Slice(all, 2)
		list[0], list[1], *got = cudnn.Perf{Algo: 9}, cudnn.Perf{Algo: 1, Deterministic: 1, Memory: 64,
			Math: cudnn.FMA}, 2
		return 0
	}
	a.GetForward = func(_ cudnn.Ptr, _ cudnn.Tensor, _ cudnn.Filter, _ cudnn.Descriptor, _ cudnn.Tensor, _ int32,
		got *int32, all *cudnn.Perf) cudnn.Status {
		return perf(got, all)
	}
	a.GetData = func(_ cudnn.Ptr, _ cudnn.Filter, _ cudnn.Tensor, _ cudnn.Descriptor, _ cudnn.Tensor, _ int32,
		got *int32, all *cudnn.Perf) cudnn.Status {
		return perf(got, all)
	}
	a.GetFilter = func(_ cudnn.Ptr, _, _ cudnn.Tensor, _ cudnn.Descriptor, _ cudnn.Filter, _ int32, got *int32,
		all *cudnn.Perf) cudnn.Status {
		return perf(got, all)
	}
	// the first needs too much workspace, the second is not deterministic
	timed := func(got *int32, all *cudnn.Perf, n uintptr) cudnn.Status {
		list := unsafe.Slice(all, 3)
		list[0], list[1] = cudnn.Perf{Algo: 9, Memory: n + 1, Deterministic: 1}, cudnn.Perf{Algo: 2, Math: cudnn.FMA}
		list[2], *got = cudnn.Perf{Algo: 1, Deterministic: 1}, 3
		return 0
	}
	a.FindForward = func(_ cudnn.Ptr, _ cudnn.Tensor, _ driver.Pointer, _ cudnn.Filter, _ driver.Pointer,
		_ cudnn.Descriptor, _ cudnn.Tensor, _ driver.Pointer,
		_ int32, got *int32, all *cudnn.Perf, _ driver.Pointer, n uintptr) cudnn.Status {
		return timed(got, all, n)
	}
	a.FindData = func(_ cudnn.Ptr, _ cudnn.Filter, _ driver.Pointer, _ cudnn.Tensor, _ driver.Pointer,
		_ cudnn.Descriptor, _ cudnn.Tensor, _ driver.Pointer,
		_ int32, got *int32, all *cudnn.Perf, _ driver.Pointer, n uintptr) cudnn.Status {
		return timed(got, all, n)
	}
	a.FindFilter = func(_ cudnn.Ptr, _ cudnn.Tensor, _ driver.Pointer, _ cudnn.Tensor, _ driver.Pointer,
		_ cudnn.Descriptor, _ cudnn.Filter, _ driver.Pointer,
		_ int32, got *int32, all *cudnn.Perf, _ driver.Pointer, n uintptr) cudnn.Status {
		return timed(got, all, n)
	}
	a.Forward = func(_ cudnn.Ptr, _ *float32, xd cudnn.Tensor, x driver.Pointer, wd cudnn.Filter, w driver.Pointer,
		c cudnn.Descriptor, algo int32,
		_ driver.Pointer, _ uintptr, _ *float32, yd cudnn.Tensor, y driver.Pointer) cudnn.Status {
		return n.convolve(algo, xd, wd, c, yd, x, w, y, y)
	}
	a.BackwardData = func(_ cudnn.Ptr, _ *float32, wd cudnn.Filter, w driver.Pointer, yd cudnn.Tensor, y driver.Pointer,
		c cudnn.Descriptor, algo int32,
		_ driver.Pointer, _ uintptr, _ *float32, xd cudnn.Tensor, x driver.Pointer) cudnn.Status {
		return n.convolve(algo, xd, wd, c, yd, x, w, y, x)
	}
	a.BackwardFilter = func(_ cudnn.Ptr, _ *float32, xd cudnn.Tensor, x driver.Pointer, yd cudnn.Tensor,
		y driver.Pointer, c cudnn.Descriptor, algo int32,
		_ driver.Pointer, _ uintptr, _ *float32, wd cudnn.Filter, w driver.Pointer) cudnn.Status {
		return n.convolve(algo, xd, wd, c, yd, x, w, y, w)
	}
	a.Backend = n.graph.Backend()
	return a
}

func wrong(is bool) cudnn.Status {
	if is {
		return 2000
	}
	return 0
}

// fakeDNN is the state of the fake cuDNN.
type fakeDNN struct {
	m       *fakegpu.Machine
	stream  driver.Stream
	next    uintptr
	images  map[cudnn.Tensor][4]int32 // n h w c
	filters map[cudnn.Filter][4]int32 // k r s c
	windows map[cudnn.Descriptor][2]int32
	types   map[uintptr]cudnn.Type

	graph       *fakecudnn.Graph
	rounding    bool  // float32 may be rounded to TF32
	wrongEngine int64 // an engine that computes wrongly: it shifts its filters
	attention   bool  // there are engines for attention
	attended    int   // how often one ran
}

// dnnElements maps cuDNN's types to number types.
var dnnElements = map[cudnn.Type]kernels.Element{cudnn.Float32: kernels.F32, cudnn.Float16: kernels.F16,
	cudnn.BFloat16: kernels.BF16}

func (n *fakeDNN) handle() uintptr { n.next++; return n.next }

// leaks fails where descriptors are left.
func (n *fakeDNN) leaks() cudnn.Status { return 0 }

func size(d [4]int32) int { return int(d[0]) * int(d[1]) * int(d[2]) * int(d[3]) }

// convolve adds each product to its sum in out.
func (n *fakeDNN) convolve(algo int32, xd cudnn.Tensor, wd cudnn.Filter, cd cudnn.Descriptor, yd cudnn.Tensor, x, w, y,
	out driver.Pointer) cudnn.Status {
	image, filter, window, result := n.images[xd], n.filters[wd], n.windows[cd], n.images[yd]
	of := n.types[uintptr(xd)]
	if of != n.types[uintptr(wd)] || of != n.types[uintptr(yd)] || algo != 1 && algo != 2 || image[3] != filter[3] ||
		result[3] != filter[0] || image[0] != result[0] {
		return 2000
	}
	return n.products(image, filter, window, result, of, x, w, y, out)
}

// unwritten reports whether operands are memory that was never written, by their first and last
// numbers.
func unwritten(operands map[driver.Pointer]matrix) bool {
	for _, o := range operands {
		n := len(o.v)
		if n < 4 || !slices.ContainsFunc(o.v[:2], isNaN32) || !slices.ContainsFunc(o.v[n-2:], isNaN32) {
			return false
		}
	}
	return true
}

func isNaN32(v float32) bool { return v != v }

// products is convolve for shapes: n h w c of images, k r s c of filters, the stride and the
// padding.
func (n *fakeDNN) products(image, filter [4]int32, window [2]int32, result [4]int32, of cudnn.Type, x, w, y,
	out driver.Pointer) cudnn.Status {
	return cudnn.Status(n.m.Enqueue(n.stream, "convolution", func() error {
		xs, errX := matrixAt(n.m, x, size(image), dnnElements[of])
		ws, errW := matrixAt(n.m, w, size(filter), dnnElements[of])
		ys, errY := matrixAt(n.m, y, size(result), dnnElements[of])
		if err := errors.Join(errX, errW, errY); err != nil {
			return err
		}
		all := map[driver.Pointer]matrix{x: xs, w: ws, y: ys}
		to := all[out]
		delete(all, out)
		if unwritten(all) { // engines are being timed
			for i := range to.v {
				to.v[i] = float32(math.NaN())
			}
			to.put()
			return nil
		}
		sums := make([]float64, len(to.v))
		at := func(d [4]int32, a, b, c, e int32) int { return int(((a*d[1]+b)*d[2]+c)*d[3] + e) }
		for i := range result[0] {
			for p := range result[1] {
				for q := range result[2] {
					for k := range filter[0] {
						for r := range filter[1] {
							for s := range filter[2] {
								h, v := p*window[0]+r-window[1], q*window[0]+s-window[1]
								if h < 0 || h >= image[1] || v < 0 || v >= image[2] {
									continue
								}
								xi, wi, yi := at(image, i, h, v, 0), at(filter, k, r, s, 0), at(result, i, p, q, k)
								xc, wc, yc := xs.v[xi:xi+int(filter[3])], ws.v[wi:wi+int(filter[3])], float64(ys.v[yi])
								switch out {
								case x:
									for c, w := range wc {
										sums[xi+c] += yc * float64(w)
									}
								case w:
									for c, x := range xc {
										sums[wi+c] += yc * float64(x)
									}
								default:
									for c, x := range xc {
										sums[yi] += float64(x) * float64(wc[c])
									}
								}
							}
						}
					}
				}
			}
		}
		for i, s := range sums {
			to.v[i] = float32(s)
		}
		to.put()
		return nil
	}))
}

// collectAll has the garbage collector find unreachable vectors.
func collectAll() {
	for range 3 {
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
}
