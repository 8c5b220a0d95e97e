package model

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"fspda/cpu"
	"fspda/device"
)

func resNetOf(t testing.TB, o ResNetOptions) *Network {
	t.Helper()
	o.Classes = cmp.Or(o.Classes, 10)
	net, err := ResNet(o)
	if err != nil {
		t.Fatal(err)
	}
	return net
}

// The counts are those of torchvision's models, and for CIFAR those of the paper (0.27M, 0.46M,
// 0.66M, 0.85M) plus 2,752 for the shortcuts of option B.
func TestResNetParameterCounts(t *testing.T) {
	for _, c := range []struct{ depth, side, classes, parameters, tensors int }{
		{18, 224, 1000, 11689512, 62},
		{34, 224, 1000, 21797672, 110},
		{50, 224, 1000, 25557032, 161},
		{101, 224, 1000, 44549160, 314},
		{152, 224, 1000, 60192808, 467},
		{50, 224, 100, 23712932, 161},
		{20, 32, 10, 269722 + 2752, 65},
		{32, 32, 10, 464154 + 2752, 101},
		{44, 32, 10, 658586 + 2752, 137},
		{56, 32, 10, 853018 + 2752, 173},
	} {
		net := resNetOf(t, ResNetOptions{Depth: c.depth, Height: c.side, Width: c.side, Classes: c.classes})
		if got := len(net.Layout().Tensors()); net.Dim() != c.parameters || got != c.tensors {
			t.Errorf("%s: %d parameters in %d tensors, want %d in %d", net.Name(), net.Dim(), got, c.parameters,
				c.tensors)
		}
	}
}

func TestResNetTensors(t *testing.T) {
	net := resNetOf(t, ResNetOptions{Depth: 50, Height: 224, Width: 224, Classes: 1000})
	var got []string
	for _, tensor := range net.Layout().Tensors()[:15] {
		got = append(got, fmt.Sprint(tensor.Name, tensor.Shape, tensor.Axes))
	}
	want := []string{
		"conv1.weight[64 7 7 3]OHWI", "bn1.weight[64]", "bn1.bias[64]",
		"layer1.0.conv1.weight[64 1 1 64]OHWI", "layer1.0.bn1.weight[64]", "layer1.0.bn1.bias[64]",
		"layer1.0.conv2.weight[64 3 3 64]OHWI", "layer1.0.bn2.weight[64]", "layer1.0.bn2.bias[64]",
		"layer1.0.conv3.weight[256 1 1 64]OHWI", "layer1.0.bn3.weight[256]", "layer1.0.bn3.bias[256]",

		"layer1.0.downsample.0.weight[256 1 1 64]OHWI",
		"layer1.0.downsample.1.weight[256]", "layer1.0.downsample.1.bias[256]",
	}
	if !slices.Equal(got, want) {
		t.Errorf("tensors are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if last, ok := net.Layout().Tensor("fc.weight"); !ok || !slices.Equal(last.Shape, []int{1000, 2048}) {
		t.Errorf("fc.weight is %v", last)
	}
	buffers := net.Buffers().Tensors()
	if len(buffers) != 106 || net.Buffers().Dim() != 53120 || buffers[0].Name != "bn1.running_mean" ||
		buffers[1].Name != "bn1.running_var" {
		t.Errorf("%d buffers of %d numbers, the first are %v", len(buffers), net.Buffers().Dim(), buffers[:2])
	}
}

// Stages halve the image in the 3×3 convolution of a bottleneck (version 1.5), and the number of
// products is the published 4.09 billion.
func TestResNet50IsVersionOnePointFive(t *testing.T) {
	code := mustPlan(t, resNetOf(t, ResNetOptions{Depth: 50, Height: 224, Width: 224, Classes: 1000}), 1, Score).Code()
	strided := 0
	for _, c := range code.Calls {
		if c.Kernel == device.Conv && c.Dims[7] == 2 {
			strided++
			if strings.HasSuffix(c.Name, ".conv1") {
				t.Errorf("%s has a stride of 2", c.Name)
			}
		}
	}
	if strided != 7 { // the stem, three 3×3 ones, three shortcuts
		t.Errorf("%d convolutions with stride 2, want 7", strided)
	}
	if code.FLOPs < 8.17e9 || code.FLOPs > 8.19e9 {
		t.Errorf("%v FLOP for an image, want 2 times 4.09e9", code.FLOPs)
	}
}

func TestResNetRefuses(t *testing.T) {
	good := ResNetOptions{Depth: 20, Height: 32, Width: 32, Classes: 10}
	for want, spoil := range map[string]func(*ResNetOptions){
		"Depth is 19, want one of [18 20 32": func(o *ResNetOptions) { o.Depth = 19 },
		"Height is 0":                        func(o *ResNetOptions) { o.Height = 0 },
		"Width is -1":                        func(o *ResNetOptions) { o.Width = -1 },
		"Channels is -3":                     func(o *ResNetOptions) { o.Channels = -3 },
		"Classes is 1, want 2":               func(o *ResNetOptions) { o.Classes = 1 },
		"BaseWidth is -1":                    func(o *ResNetOptions) { o.BaseWidth = -1 },
		"WeightDecay is NaN":                 func(o *ResNetOptions) { o.WeightDecay = math.NaN() },
		"LabelSmoothing is 1, want":          func(o *ResNetOptions) { o.LabelSmoothing = 1 },
		`Decay is "bias", want all, weights`: func(o *ResNetOptions) { o.Decay = "bias" },
		"layer conv1: ": func(o *ResNetOptions) {
			o.Height, o.Width, o.BaseWidth = maxSide, maxSide, maxSide
		},
	} {
		o := good
		spoil(&o)
		if net, err := ResNet(o); net != nil || err == nil || !strings.HasPrefix(err.Error(), "model: ") ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("network %v, error %v, want it to say %q", net, err, want)
		}
	}
	for depth := range resNets { // a single pixel is enough
		net := resNetOf(t, ResNetOptions{Depth: depth, Height: 1, Width: 1, BaseWidth: 1})
		mustPlan(t, net, 1, Train)
	}
}

// Weight decay applies to all tensors, or excludes those that torchvision's recipes exclude.
func TestDecayedTensors(t *testing.T) {
	// 19 convolutions, 2 shortcuts, the head
	for decay, want := range map[Decay]int{"": 65, DecayAll: 65, DecayWeights: 22, DecayNoNorm: 23,
		"by-name(conv1,fc)": 3, "by-name(*,!fc,!conv1)": 62, "by-name(*,!bn*,!*.*.bn*)": 27} {
		net, n := resNetOf(t, ResNetOptions{Depth: 20, Height: 8, Width: 8, Decay: decay, WeightDecay: 0.5}), 0
		for _, tensor := range net.Layout().Tensors() {
			if tensor.Decay {
				n++
			}
		}
		p := mustPlan(t, net, 2, Train)
		if added := count(p, device.AddScaled) + count(p, device.LinearGradWDecay); n != want ||
			count(p, device.HalfSquare) != want || added != want {
			t.Errorf("decay %q: %d tensors decay, %d are in the loss and %d in the gradient, want %d", decay, n,
				count(p, device.HalfSquare), added, want)
		}
	}
}

// The released program leaves tensors whose names contain bn out of weight decay, and so decays the batch
// norms of shortcuts: of the 53,120 values of ResNet-50's batch norms it excludes 45,440.
func TestDecayByName(t *testing.T) {
	for decay, want := range map[Decay]int{DecayNoNorm: 53120, "by-name(*,!bn*,!*.*.bn*)": 45440} {
		net, err := ResNet(ResNetOptions{Depth: 50, Height: 32, Width: 32, Classes: 1000, Decay: decay,
			WeightDecay: 1e-4})
		if err != nil {
			t.Fatal(err)
		}
		if got := len(net.Undecayed()); got != want {
			t.Errorf("%s leaves %d values out, want %d", decay, got, want)
		}
	}
}

// Filters are normal with variance 2/(side²·outputs), the last layer has standard deviation 0.01;
// batch norm has its initial values.
func TestResNetInit(t *testing.T) {
	net := resNetOf(t, ResNetOptions{Depth: 18, Height: 64, Width: 64, BaseWidth: 16, Classes: 100})
	x := net.Init(5)
	if !slices.Equal(x, net.Init(5)) || slices.Equal(x, net.Init(6)) {
		t.Error("the model is not a function of the seed")
	}
	for _, tensor := range net.Layout().Tensors() {
		v := net.Layout().View(x, tensor.Name)
		sum, squares := 0.0, 0.0
		for _, f := range v {
			sum += float64(f)
			squares += float64(f) * float64(f)
		}
		n := float64(len(v))
		want := 0.0
		switch {
		case tensor.Axes == OHWI:
			want = math.Sqrt(2 / float64(tensor.Shape[0]*tensor.Shape[1]*tensor.Shape[2]))
		case tensor.Name == "fc.weight":
			want = 0.01
		case strings.HasSuffix(tensor.Name, ".weight"): // of a batch norm
			if sum != n || squares != n {
				t.Errorf("%s: not all 1", tensor.Name)
			}
			continue
		default:
			if squares != 0 {
				t.Errorf("%s: not all 0", tensor.Name)
			}
			continue
		}
		if mean := sum / n; math.Abs(mean) > 5*want/math.Sqrt(n) {
			t.Errorf("%s: mean %v, want 0", tensor.Name, mean)
		}
		if got := math.Sqrt(squares / n); math.Abs(got/want-1) > 5/math.Sqrt(2*n) {
			t.Errorf("%s: deviation %v, want %v", tensor.Name, got, want)
		}
	}
	for i, v := range net.InitBuffers() {
		buffer := net.Buffers().Tensors()[slices.IndexFunc(net.Buffers().Tensors(),
			func(b Tensor) bool { return i < b.Offset+b.Size })]
		if want := map[bool]float32{true: 1}[strings.HasSuffix(buffer.Name, ".running_var")]; v != want {
			t.Fatalf("%s starts at %v, want %v", buffer.Name, v, want)
		}
	}
}

// smallResNets are small networks of the family: basic blocks and bottlenecks, both stems, with and
// without shortcuts that change shape.
func smallResNets(t testing.TB) []*Network {
	two := func(plan resNet, o ResNetOptions) *Network {
		o.Classes = 3
		o.Channels, o.BaseWidth = cmp.Or(o.Channels, 3), cmp.Or(o.BaseWidth, plan.baseWidth())
		net, err := newNetwork(Network{name: o.name(plan), inputs: o.Height * o.Width * o.Channels,
			image:   []int{o.Height, o.Width, o.Channels},
			classes: o.Classes, loss: o.loss(), forward: plan.forwardOf(o)})
		if err != nil {
			t.Fatal(err)
		}
		return net
	}
	return []*Network{
		two(resNet{blocks: []int{1, 1}, bottleneck: true}, ResNetOptions{Height: 9, Width: 8, BaseWidth: 2,
			WeightDecay: 0.1}),
		two(resNet{blocks: []int{2}}, ResNetOptions{Height: 8, Width: 11, BaseWidth: 3, LabelSmoothing: 0.1}),
		resNetOf(t, ResNetOptions{Depth: 20, Height: 4, Width: 4, Channels: 1, BaseWidth: 1, WeightDecay: 0.1,
			Decay: DecayWeights, Classes: 3}),
	}
}

// smallParams are parameters near the start of training, with different scales and shifts.
func smallParams(net *Network) []float64 {
	x, noise := make([]float64, net.Dim()), random(net.Dim(), 41)
	for i, v := range net.Init(3) {
		x[i] = float64(v) + 0.1*noise[i]
	}
	return x
}

// Every derivative of every tensor of the small networks agrees with finite differences.
func TestResNetGradient(t *testing.T) {
	for _, net := range smallResNets(t) {
		for _, kind := range []Kind{Train, Step} {
			t.Run(net.Name()+" "+kind.String(), func(t *testing.T) {
				const batch = 3
				p := mustPlan(t, net, batch, kind)
				checkPlaces(t, net.Name(), p)
				x, labels := random(batch*net.inputs, 42), randomLabels(batch, net.classes, 43)
				if kind == Train {
					checkGradient(t, p.Code(), smallParams(net), x, labels)
					return
				}
				_, want := run64(mustPlan(t, net, batch, Train).Code(), smallParams(net), x, labels)
				_, got := run64Buffered(p.Code(), smallParams(net), make([]float64, net.buffers.dim), 0.1, x, labels)
				if !slices.Equal(got, want) {
					t.Error("another gradient than that of Train")
				}
			})
		}
	}
}

// A plan on the host has the bits of Gorgonia's own machine: gradient, results and buffers, for
// every kind.
func TestResNetIsItsReference(t *testing.T) {
	dev := cpu.New()
	for _, net := range smallResNets(t) {
		for kind := range Next {
			const batch = 2
			params, buffers := round(smallParams(net)), net.InitBuffers()
			b := device.Batch{X: round(random(batch*net.inputs, 44)), Y: randomLabels(batch, net.classes, 45)}
			g, err := net.Graph(batch, kind, cpu.Call)
			if err != nil {
				t.Fatal(err)
			}
			p, err := g.Compile()
			if err != nil {
				t.Fatal(err)
			}
			c := p.Code()
			var grad, want []float32
			var gradient, moved device.Vector
			if c.Gradient {
				grad, want, gradient = make([]float32, c.Dim), make([]float32, c.Dim), dev.NewVector(c.Dim)
			}
			if c.Buffers == 0 {
				buffers = nil
			} else {
				moved = vectorOf(dev, buffers)
			}
			out, outWant := make([]float64, len(c.Results)), make([]float64, len(c.Results))
			if err := g.EvaluateBuffered(params, want, buffers, 0.3, b, outWant); err != nil {
				t.Fatal(err)
			}
			program, err := dev.Load(c)
			if err != nil {
				t.Fatal(err)
			}
			if err := program.RunBuffered(vectorOf(dev, params), gradient, moved, 0.3, b, out); err != nil {
				t.Fatal(err)
			}
			if c.Gradient {
				dev.Read(grad, gradient)
			}
			what := net.Name() + " " + kind.String()
			sameBits(t, what+", gradient", grad, want)
			if !slices.Equal(out, outWant) {
				t.Errorf("%s: results %v, Gorgonia's machine has %v", what, out, outWant)
			}
			if moved != nil {
				got := make([]float32, c.Buffers)
				dev.Read(got, moved)
				sameBits(t, what+", buffers", got, buffers)
			}
		}
	}
}

func vectorOf(dev device.Device, x []float32) device.Vector {
	v := dev.NewVector(len(x))
	dev.Write(v, x)
	return v
}
