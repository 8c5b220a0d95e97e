package cuda

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fspda/cuda/compiler"
	"fspda/cuda/driver"
	"fspda/device"
	"fspda/internal/testing/fakegpu"
	"fspda/model"
)

// convAndGradients is a convolution and its gradients of operands in vectors: x and w among the
// parameters, dx and dw in the gradient.
func convAndGradients(shift int) (*device.Code, [3]int) {
	n, h, w, c, k, r := 2, 5, 6, 4, 8, 3
	dims := []int{n, h, w, c, k, r, r, 1, 1}
	x, f, y := n*h*w*c, k*r*r*c, n*h*w*k
	at := func(s device.Space, off, len int) device.Ref { return device.Ref{Space: s, Off: off, Len: len} }
	code := &device.Code{Name: "convolution and gradients", Batch: 1, Features: 1, Dim: shift + x + f, Arena: y,
		Gradient: true, Calls: []device.Call{
			{Kernel: device.Conv, Dims: dims, In: []device.Ref{at(device.Params, shift, x), at(device.Params, shift+x,
				f)}, Out: []device.Ref{at(device.Arena, 0, y)}},
			{Kernel: device.ConvGradX, Dims: dims, In: []device.Ref{at(device.Arena, 0, y), at(device.Params, shift+x,
				f)}, Out: []device.Ref{at(device.Grads, shift, x)}},
			{Kernel: device.ConvGradW, Dims: dims, In: []device.Ref{at(device.Params, shift, x),
				at(device.Arena, 0, y)}, Out: []device.Ref{at(device.Grads, shift+x, f)}},
		}}
	return code, [3]int{x, f, y}
}

// runConvolutions opens a fake GPU with a folder for choices, runs convAndGradients three times,
// and returns the implementations.
func runConvolutions(t *testing.T, dir string, shift int, options ...Option) (routes []string, n *fakeDNN) {
	t.Helper()
	m, _ := fakeBackend(t, fakegpu.Options{})
	n = newFakeDNN(m)
	n.rounding = slices.ContainsFunc(options,
		func(o Option) bool { d := &Device{}; _ = o(d); return d.precision == TF32 })
	p := backendWith(m, n)
	made := p.libraries
	p.libraries = func(p driver.Properties) (libraries, error) { l, err := made(p); l.choicesDir = dir; return l, err }
	d, err := open(p, options...)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}()
	code, _ := convAndGradients(shift)
	program, err := d.Load(code)
	if err != nil {
		t.Fatal(err)
	}
	x, g := d.NewVector(code.Dim), d.NewVector(code.Dim)
	numbers := make([]float32, code.Dim)
	for i := range numbers {
		numbers[i] = float32(i%5) - 2
	}
	d.Write(x, numbers)
	for range 3 {
		if err := program.Run(x, g, device.Batch{X: []float32{0}, Y: []int32{0}}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if len(n.graph.Faults) > 0 {
		t.Errorf("the graph API was used wrongly: %s", strings.Join(n.graph.Faults, "; "))
	}
	return program.(*Program).Routes(), n
}

// algorithmsOf returns the algorithms or engines of routes.
func algorithmsOf(routes []string) (all []string) {
	for _, r := range routes {
		_, how, _ := strings.Cut(r, ": ")
		all = append(all, how)
	}
	return all
}

// A convolution runs on an engine that rounds no more than the precision allows: in deterministic
// runs the first deterministic one, else the fastest. Where an engine does not run, an algorithm
// replaces it.
func TestRoutes(t *testing.T) {
	for _, c := range []struct {
		name    string
		options []Option
		want    []string
	}{
		{"fp32", []Option{WithPrecision(FP32)}, []string{"graph, engine 28 2=28", "graph, engine 28 2=28",
			"graph, engine 28 2=28"}},
		{"fp32, deterministic", []Option{WithPrecision(FP32), Deterministic(true)}, []string{"graph, engine 28 2=28",
			"algorithm 1", "graph, engine 28 2=28"}},
		{"tf32, deterministic", []Option{WithPrecision(TF32), Deterministic(true)}, []string{"graph, engine 62 2=62",
			"algorithm 1", "graph, engine 62 2=62"}},
		{"bf16, deterministic", []Option{WithPrecision(BF16), Deterministic(true)}, []string{"graph, engine 62 2=62",
			"algorithm 1", "graph, engine 62 2=62"}},
	} {
		routes, _ := runConvolutions(t, "", 0, c.options...)
		if got := algorithmsOf(routes); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// Choices by time are read from disk in later runs. Operands with another alignment are chosen for
// anew.
func TestRoutesAreKept(t *testing.T) {
	dir := t.TempDir()
	first, n := runConvolutions(t, dir, 0)
	tried := n.graph.Executed
	again, n := runConvolutions(t, dir, 0)
	if !slices.Equal(first, again) || tried < 20 || n.graph.Executed > 9 {
		t.Errorf("chosen %q after %d executions, then %q after %d; want the same after few", first, tried, again,
			n.graph.Executed)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) != 3 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil || !strings.Contains(string(text), `"engine":{"index":28`) {
		t.Errorf("%s, %v", text, err)
	}
	if shifted, n := runConvolutions(t, dir, 1); !slices.Equal(first, shifted) || n.graph.Executed < 20 {
		t.Errorf("operands that lie at multiples of 4: %q after %d executions", shifted, n.graph.Executed)
	}
}

// Operands of every convolution of the residual networks have the alignment that the fastest
// kernels need.
func TestAlignment(t *testing.T) {
	for name, shape := range map[string][]int{"resnet20": {32, 32, 3}, "resnet18": {64, 64, 3},
		"resnet50": {64, 64, 3}} {
		net, err := model.Open(name, model.Options{Shape: shape, Classes: 10})
		if err != nil {
			t.Fatal(err)
		}
		p, err := net.Plan(2, model.Train)
		if err != nil {
			t.Fatal(err)
		}
		half, err := compiler.Compile(p.Code(), compiler.Options{Precision: FP16, Epilogues: true, NoFusion: true})
		if err != nil {
			t.Fatal(err)
		}
		float32s, err := compiler.Compile(p.Code(), compiler.Options{Precision: FP32, Epilogues: true, NoFusion: true})
		if err != nil {
			t.Fatal(err)
		}
		for what, plan := range map[string]*compiler.Plan{"fp32": float32s, "fp16": half} {
			convolutions := 0
			for i := range plan.Tasks {
				x := &plan.Tasks[i]
				if x.Call == nil || scratchOf(x) == 0 || convDirections[x.Call.Kernel] == 0 &&
					x.Call.Kernel != device.Conv || x.Work != compiler.Compute {
					continue
				}
				convolutions++
				if a := alignments(x); a != [3]int{maxAlignment, maxAlignment, maxAlignment} {
					t.Errorf("%s in %s, %s: operands lie at multiples of %d, want %d", name, what, x.Title(), a,
						maxAlignment)
				}
			}
			if convolutions < 50 {
				t.Errorf("%s in %s: %d convolutions", name, what, convolutions)
			}
		}
	}
}

// Each operand of a convolution has the alignment of its place, in the order of cuDNN.
func TestAlignments(t *testing.T) {
	at := func(offset int) compiler.Operand { return compiler.Operand{Offset: offset} }
	for kernel, want := range map[device.Kernel][3]int{device.Conv: {16, 4, 8}, device.ConvGradX: {8, 4, 16},
		device.ConvGradW: {16, 4, 8}} {
		x := &compiler.Task{Call: &device.Call{Kernel: kernel}, In: []compiler.Operand{at(64), at(12)},
			Out: []compiler.Operand{at(24)}}
		if kernel == device.ConvGradW { // reads dy and makes dw
			x.In[1], x.Out[0] = x.Out[0], x.In[1]
		}
		if got := alignments(x); got != want {
			t.Errorf("%s: %v, want %v", kernel, got, want)
		}
	}
}
