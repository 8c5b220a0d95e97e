package kernels_test

import (
	"math"
	"strings"
	"testing"

	"fspda/cpu"
	"fspda/cuda/kernels"
	"fspda/device"
	"fspda/internal/rng"
	"fspda/model"
)

// Three agents that compute together each get the gradient and loss of a CPU program, but for the
// rounding of sums, and the same bits with separate launches and with the megakernel.
func TestGroup(t *testing.T) {
	h := onHost(t)
	for _, c := range []struct {
		name    string
		options model.MLPOptions
		bytes   bool
	}{
		{"the paper's, smaller", model.MLPOptions{Inputs: 60, Classes: 10, Hidden: []int{17}}, false},
		{"bytes", model.MLPOptions{Inputs: 60, Classes: 10, Hidden: []int{17}}, true},
		{"decay", model.MLPOptions{Inputs: 60, Classes: 10, Hidden: []int{17}, WeightDecay: 1e-2}, true},
		{"decay of many tensors", model.MLPOptions{Inputs: 20, Classes: 4, Hidden: []int{7, 6, 5, 9},
			WeightDecay: 1e-2}, false},
		{"relu, deep", model.MLPOptions{Inputs: 30, Classes: 5, Hidden: []int{20, 33}, Activation: "relu"}, false},
		{"linear", model.MLPOptions{Inputs: 400, Classes: 3}, true},
		{"wide tiles, and products in parts", model.MLPOptions{Inputs: 770, Classes: 11, Hidden: []int{103},
			WeightDecay: 1e-2}, true},
		{"the paper's", model.MLPOptions{Inputs: 784, Classes: 10, Hidden: []int{100}, WeightDecay: 1e-4}, true},
		{"relu, in parts", model.MLPOptions{Inputs: 388, Classes: 40, Hidden: []int{18}, Activation: "relu",
			LabelSmoothing: 0.1}, true},
		{"a wide last layer", model.MLPOptions{Inputs: 30, Classes: 200, Hidden: []int{70}}, true},
		{"a head, not in parts", model.MLPOptions{Inputs: 60, Classes: 16, Hidden: []int{12, 132}}, true},
		{"a wide head with smoothed labels", model.MLPOptions{Inputs: 400, Classes: 3, Hidden: []int{300},
			LabelSmoothing: 0.1, WeightDecay: 1e-3}, true},
		{"a head of ReLU", model.MLPOptions{Inputs: 400, Classes: 10, Hidden: []int{64}, Activation: "relu"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			network, err := model.MLP(c.options)
			if err != nil {
				t.Fatal(err)
			}
			plan, err := network.Plan(45, model.Train)
			if err != nil {
				t.Fatal(err)
			}
			for name, tensorCores := range map[string]bool{"none": false, "tensor cores": true} {
				t.Run(name, func(t *testing.T) {
					separate := compareGroup(t, h, network, plan.Code(), c.bytes, false, tensorCores)
					listed := compareGroup(t, h, network, plan.Code(), c.bytes, true, tensorCores)
					for z := range separate {
						sameBits(t, "gradient in a megakernel", listed[z], separate[z])
					}
				})
			}
		})
	}
}

// compareGroup compares the gradients and results of agents with a CPU program, and returns them,
// agent by agent.
func compareGroup(t *testing.T, h *host, network *model.Network, code *device.Code, asBytes, listedCall,
	tensorCores bool) (got [][]float32) {
	const agents, stored = 3, 50
	m, d := code.Batch, code.Dim
	stride := (code.Arena+3)&^3 + 8
	arena := make([]float32, agents*stride)
	labels := make([]float32, agents*m)
	rows := make([]int32, agents*m)
	bytes := randomBytes(stored * code.Features)
	s := rng.New(1, "test")
	var params, grads, arenas, inputs []kernels.Address
	batches, weights := make([]device.Batch, agents), make([][]float32, agents)
	for z := range agents {
		b := device.Batch{Bytes: bytes, Rows: rows[z*m : (z+1)*m], Scale: []float32{0.02}, Shift: []float32{-1.3},
			Y: make([]int32, m)}
		for i := range m {
			b.Rows[i], b.Y[i] = int32(s.IntN(stored)), int32(s.IntN(network.Classes()))
			labels[z*m+i] = float32(b.Y[i])
		}
		x := b.Numbers(nil, code.Features)
		inputs = append(inputs, at(h, x))
		if !asBytes {
			b = device.Batch{X: x, Y: b.Y}
		}
		batches[z], weights[z] = b, network.Init(uint64(z))
		got = append(got, make([]float32, d))
		params, grads = append(params, at(h, weights[z])), append(grads, at(h, got[z]))
		arenas = append(arenas, at(h, arena[z*stride:]))
	}
	bad := []uint32{kernels.NoBadRow}
	f := kernels.Group{Agents: agents, Params: at(h, params), Grads: at(h, grads), Arena: at(h, arena),
		Arenas: at(h, arenas), Stride: stride, Labels: at(h, labels),
		Scratch: at(h, make([]float64, kernels.GroupScratch(code, agents))), Bad: at(h, bad), TensorCores: tensorCores}
	if asBytes {
		f.Bytes = &kernels.ByteInputs{Bytes: at(h, bytes), Rows: at(h, rows), Scale: 0.02, Shift: -1.3}
	} else {
		f.Inputs = at(h, inputs)
	}
	if listedCall {
		phases, _, err := f.Phases(code)
		if err != nil {
			t.Fatal(err)
		}
		m := h.newList(32 << 10)
		m.add(phases...)
		m.run(3)
	} else {
		calls, err := f.Lower(code)
		if err != nil {
			t.Fatal(err)
		}
		h.run(calls...)
	}
	engine := cpu.New()
	for z := range agents {
		p, err := engine.Load(code)
		if err != nil {
			t.Fatal(err)
		}
		grad, out := engine.NewVector(d), make([]float64, len(code.Results))
		if err := p.Run(onCPU(engine, weights[z]), grad, batches[z], out); err != nil {
			t.Fatal(err)
		}
		nearSums(t, "gradient", got[z], fromCPU(engine, grad))
		for i, r := range code.Results {
			v := arena[z*stride+r.Ref.Off]
			if math.Abs(float64(v)-out[i]) > 1e-6*math.Abs(out[i]) {
				t.Errorf("agent %d: %s is %v, want %v", z, r.Name, v, out[i])
			}
			got[z] = append(got[z], v)
		}
	}
	if bad[0] != kernels.NoBadRow {
		t.Errorf("row %d is bad", bad[0])
	}
	return got
}

// The gradient of figure 1's network with weight decay takes three phases: the first layer, the
// rows of the other, and the gradients of all parameters.
func TestGroupPhases(t *testing.T) {
	network, err := model.MLP(model.MLPOptions{Inputs: 784, Classes: 10, Hidden: []int{100}, WeightDecay: 1e-4})
	if err != nil {
		t.Fatal(err)
	}
	plan, err := network.Plan(256, model.Train)
	if err != nil {
		t.Fatal(err)
	}
	const some = 256
	f := kernels.Group{Agents: 10, Params: some, Grads: some, Arena: some, Arenas: some, Inputs: some, Labels: some,
		Scratch: some, Bad: some}
	for _, bytes := range []*kernels.ByteInputs{nil, {}} {
		f.Bytes = bytes
		phases, done, err := f.Phases(plan.Code())
		if err != nil || len(phases) != 3 || done != 3 {
			t.Errorf("%d phases, the results in %d, %v; want 3 and 3", len(phases), done, err)
		}
		calls, err := f.Lower(plan.Code())
		if err != nil || len(calls) != 11 {
			t.Errorf("%d launches, %v; want 11", len(calls), err)
		}
	}
}

// Lower rejects code that Group does not support, and names the kernel.
func TestGroupRejects(t *testing.T) {
	_, err := kernels.Group{Agents: 2}.Lower(&device.Code{Calls: []device.Call{{Kernel: device.Conv,
		Name: "layer1.conv"}}})
	if err == nil || !strings.Contains(err.Error(), "conv of layer layer1.conv") {
		t.Errorf("%v", err)
	}
}
