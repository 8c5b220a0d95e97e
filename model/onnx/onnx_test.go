package onnx

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"fspda/cpu"
	"fspda/device"
	"fspda/internal/rng"
	"fspda/model"
)

// networks are small networks with every kind of layer.
func networks(t *testing.T) []*model.Network {
	t.Helper()
	var nets []*model.Network
	add := func(net *model.Network, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		nets = append(nets, net)
	}
	add(model.MLP(model.MLPOptions{Inputs: 7, Hidden: []int{5, 4}, Classes: 3}))
	add(model.MLP(model.MLPOptions{Inputs: 7, Hidden: []int{5}, Classes: 3, Activation: "relu"}))
	add(model.MLP(model.MLPOptions{Inputs: 7, Classes: 3}))
	add(model.ResNet(model.ResNetOptions{Depth: 18, Height: 33, Width: 20, Classes: 5, BaseWidth: 3}))
	add(model.ResNet(model.ResNetOptions{Depth: 50, Height: 32, Width: 32, Classes: 5, BaseWidth: 2}))
	add(model.ResNet(model.ResNetOptions{Depth: 20, Height: 9, Width: 8, Channels: 1, Classes: 4, BaseWidth: 4,
		Recompute: model.RecomputeBlocks}))
	return nets
}

// weightsOf draws parameters that differ between layers, and statistics far from their initial
// values.
func weightsOf(net *model.Network) (x, buffers []float32) {
	s := rng.New(1, "onnx")
	x, buffers = net.Init(1), net.InitBuffers()
	for i := range x {
		x[i] += 0.1 * float32(s.Norm())
	}
	for i := range buffers {
		buffers[i] += 0.3 * s.Float32()
	}
	return x, buffers
}

func write(t *testing.T, net *model.Network, x, buffers []float32) []byte {
	t.Helper()
	var file bytes.Buffer
	if err := Write(&file, net, x, buffers, map[string]string{"run": "r", "iteration": "7"}); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// The file of a network for images of one size is the network for images of another.
func TestWriteIsOfAnySize(t *testing.T) {
	of := func(h, w int) *model.Network {
		net, err := model.ResNet(model.ResNetOptions{Depth: 20, Height: h, Width: w, Classes: 4, BaseWidth: 4})
		if err != nil {
			t.Fatal(err)
		}
		return net
	}
	x, buffers := weightsOf(of(9, 8))
	compare(t, of(12, 21), x, buffers, decodeModel(t, write(t, of(9, 8), x, buffers)))
}

// A file that is decoded by the wire format and evaluated by the definitions of its operators gives
// the logits of the network on the device.
func TestWriteComputesTheNetwork(t *testing.T) {
	for _, net := range networks(t) {
		x, buffers := weightsOf(net)
		compare(t, net, x, buffers, decodeModel(t, write(t, net, x, buffers)))
	}
}

// compare evaluates a file and the network on a batch.
func compare(t *testing.T, net *model.Network, x, buffers []float32, d decoded) {
	t.Helper()
	dev := cpu.New()
	defer dev.Close()
	const batch = 2
	s := rng.New(2, "onnx")
	b := device.Batch{X: make([]float32, batch*net.Inputs()), Y: make([]int32, batch)}
	for i := range b.X {
		b.X[i] = float32(s.Norm())
	}
	v, w := dev.NewVector(len(x)), dev.NewVector(len(buffers))
	dev.Write(v, x)
	dev.Write(w, buffers)
	want := make([]float64, batch*net.Classes())
	if err := model.NewEngine(net, dev).Predict(want, v, w, b); err != nil {
		t.Fatal(err)
	}
	got := d.run(t, channelsFirst(net, b))
	if !slices.Equal(got.shape, []int{batch, net.Classes()}) {
		t.Errorf("%s: logits of shape %v", net.Name(), got.shape)
	}
	largest, far := 0.0, 0.0
	for i, v := range got.values {
		largest, far = math.Max(largest, math.Abs(want[i])), math.Max(far, math.Abs(float64(v)-want[i]))
	}
	if !(far <= 1e-5*largest) || largest < 1e-2 {
		t.Errorf("%s: the file's logits differ by up to %g, of %g", net.Name(), far, largest)
	}
}

// channelsFirst converts a batch to N×C×H×W.
func channelsFirst(net *model.Network, b device.Batch) array {
	image := net.Image()
	if image == nil {
		return array{[]int{b.N(), net.Inputs()}, b.X}
	}
	h, w, c := image[0], image[1], image[2]
	a := array{[]int{b.N(), c, h, w}, make([]float32, len(b.X))}
	for i, v := range b.X {
		n, pixel, channel := i/(h*w*c), i/c%(h*w), i%c
		a.values[(n*c+channel)*h*w+pixel] = v
	}
	return a
}

// Input and output have a free batch axis, images a free height and width, tensors have the names of
// the layouts and the shapes of torchvision, and every tensor is read.
func TestWriteStructure(t *testing.T) {
	for _, net := range networks(t) {
		x, buffers := weightsOf(net)
		d := decodeModel(t, write(t, net, x, buffers))
		want := []any{"batch", net.Inputs()}
		if image := net.Image(); image != nil {
			want = []any{"batch", image[2], "height", "width"}
		}
		if !slices.Equal(d.input, want) || !slices.Equal(d.output, []any{"batch", net.Classes()}) {
			t.Errorf("%s: ends %v and %v", net.Name(), d.input, d.output)
		}
		if d.metadata["run"] != "r" || d.metadata["iteration"] != "7" {
			t.Errorf("%s: metadata %v", net.Name(), d.metadata)
		}
		read, names := map[string]bool{}, map[string]bool{}
		for _, n := range d.nodes {
			if names[n.name] || n.name == "" {
				t.Errorf("%s: two nodes are called %q", net.Name(), n.name)
			}
			names[n.name] = true
			for _, in := range n.in {
				read[in] = true
			}
		}
		ts := append(net.Layout().Tensors(), net.Buffers().Tensors()...)
		for _, w := range ts {
			if got := d.tensors[w.Name]; !slices.Equal(got.shape, w.TorchShape()) || !read[w.Name] {
				t.Errorf("%s: tensor %s has the shape %v, want %v, and read is %v", net.Name(), w.Name, got.shape,
					w.TorchShape(), read[w.Name])
			}
		}
		if len(d.tensors) != len(ts) {
			t.Errorf("%s: %d tensors, want %d", net.Name(), len(d.tensors), len(ts))
		}
	}
}

// failing accepts the given number of bytes and then fails.
type failing struct{ limit int }

var errFull = errors.New("full")

func (f *failing) Write(p []byte) (int, error) {
	if f.limit -= len(p); f.limit < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestWriteErrors(t *testing.T) {
	net := networks(t)[3]
	x, buffers := weightsOf(net)
	if err := Write(&bytes.Buffer{}, net, x[1:], buffers, nil); err == nil || !strings.Contains(err.Error(),
		fmt.Sprint(net.Dim())) {
		t.Errorf("too few parameters: %v", err)
	}
	if err := Write(&bytes.Buffer{}, net, x, nil, nil); err == nil || !strings.Contains(err.Error(), "0 buffers") {
		t.Errorf("no buffers: %v", err)
	}
	var whole bytes.Buffer
	if err := Write(&whole, net, x, buffers, nil); err != nil {
		t.Fatal(err)
	}
	size := whole.Len()
	for _, limit := range []int{0, size / 2, size - 1} {
		if err := Write(&failing{limit}, net, x, buffers, nil); !errors.Is(err, errFull) {
			t.Errorf("a disk with room for %d bytes of %d: %v", limit, size, err)
		}
	}
}
