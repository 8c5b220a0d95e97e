package cuda

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"fspda/device"
	"fspda/internal/rng"
	"fspda/internal/testing/fakegpu"
	"fspda/model"
)

// autocastTask is a training that bench/peers/autocast.py runs in PyTorch.
type autocastTask struct {
	Dtype      string          `json:"dtype"`
	Activation string          `json:"activation"`
	Sizes      []int           `json:"sizes"`
	Params     []float32       `json:"params"`
	Batches    []autocastBatch `json:"batches"`
	Rate       float64         `json:"rate"`
	Decay      float64         `json:"decay"`
	Smoothing  float64         `json:"smoothing"`
	Clip       float64         `json:"clip"`
	Scale      float64         `json:"scale"`
	Good       int             `json:"good"`
}

type autocastBatch struct {
	X []float32 `json:"x"`
	Y []int32   `json:"y"`
}

// autocastResult is the result of a training, by iteration.
type autocastResult struct {
	Losses  []float64 `json:"losses"`
	Scales  []float64 `json:"scales"`
	Skipped []bool    `json:"skipped"`
	Params  []float32 `json:"params"`
}

// Twenty steps in 16 bits match PyTorch's autocast and GradScaler, in batch groups and without:
// losses and model up to rounding, the same skipped steps, the same loss scales. FSPDA_PEERS names
// a Python with PyTorch.
func TestAutocast(t *testing.T) {
	python := os.Getenv("FSPDA_PEERS")
	if python == "" {
		t.Skip("set FSPDA_PEERS to a Python with PyTorch, such as that of make peers")
	}
	for _, c := range []struct {
		name  string
		task  autocastTask
		batch int
		skip  bool // steps are skipped
		far   float64
	}{
		// With one example at a time no gradient of a weight is beyond float16, in which PyTorch
		// has it, unless the gradient of the logits is.
		{"overflow", autocastTask{Dtype: "float16", Activation: "sigmoid", Scale: 1 << 20}, 1, true, 0.002},
		{"growth, decay and smoothing", autocastTask{Dtype: "float16", Activation: "relu", Decay: 0.01, Smoothing: 0.1,
			Scale: 1 << 14, Good: 1990}, 6, false, 0.002},
		{"clipped", autocastTask{Dtype: "float16", Activation: "sigmoid", Decay: 0.01, Clip: 0.05, Scale: 1 << 16}, 6,
			false, 0.002},
		{"bf16", autocastTask{Dtype: "bfloat16", Activation: "relu", Decay: 0.01, Smoothing: 0.1}, 6, false, 0.01},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.task.Sizes, c.task.Rate = []int{21, 17, 5}, 0.5
			net, err := model.MLP(model.MLPOptions{Inputs: 21, Classes: 5, Hidden: []int{17},
				Activation: c.task.Activation, WeightDecay: c.task.Decay, LabelSmoothing: c.task.Smoothing})
			if err != nil {
				t.Fatal(err)
			}
			c.task.Params = net.Init(1)
			s := rng.New(1, "autocast")
			for range 20 {
				b := autocastBatch{X: make([]float32, c.batch*21), Y: make([]int32, c.batch)}
				for i := range b.X {
					b.X[i] = float32(0.3 * s.Norm())
				}
				for i := range b.Y {
					b.Y[i] = int32(s.IntN(5))
				}
				c.task.Batches = append(c.task.Batches, b)
			}
			want := byPyTorch(t, python, c.task)
			if slices.Contains(want.Skipped, true) != c.skip {
				t.Fatalf("PyTorch skips %v", want.Skipped)
			}
			for name, options := range map[string][]Option{"in a group": nil, "without groups": {withoutGroups}} {
				compareTo(t, name, trainHere(t, net, c.task, options...), want, c.far)
			}
		})
	}
}

// compareTo compares a training with PyTorch's. The models may differ by most, relative to the
// length: some roundings of the gradients.
func compareTo(t *testing.T, name string, got, want autocastResult, most float64) {
	t.Helper()
	if !slices.Equal(got.Skipped, want.Skipped) || !slices.Equal(got.Scales, want.Scales) {
		t.Errorf("%s: loss scales %v, PyTorch has %v; skipped %v and %v", name, got.Scales, want.Scales, got.Skipped,
			want.Skipped)
	}
	for i, l := range got.Losses {
		if !(math.Abs(l-want.Losses[i]) <= most*want.Losses[i]) {
			t.Errorf("%s: losses %v, PyTorch has %v", name, got.Losses, want.Losses)
			break
		}
	}
	far := distance(got.Params, want.Params)
	t.Logf("%s: the model differs by %.2g of its length", name, far)
	if !(far <= most) {
		t.Errorf("%s: the model differs by %.2g of its length", name, far)
	}
}

func byPyTorch(t *testing.T, python string, task autocastTask) (r autocastResult) {
	t.Helper()
	in, err := json.Marshal(task)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, filepath.Join("..", "bench", "peers", "autocast.py"))
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), &stderr
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &r)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	return r
}

// trainHere runs the training on a fake GPU, by the operations of an agent's step.
func trainHere(t *testing.T, net *model.Network, task autocastTask, options ...Option) (r autocastResult) {
	t.Helper()
	p := map[string]Precision{"float16": FP16, "bfloat16": BF16}[task.Dtype]
	d, _ := openFake(t, fakegpu.Options{}, false, append(options, WithPrecision(p))...)
	plan, err := net.Plan(len(task.Batches[0].Y), model.Train)
	if err != nil {
		t.Fatal(err)
	}
	program, err := d.Load(plan.Code())
	if err != nil {
		t.Fatal(err)
	}
	x, g := d.NewVector(net.Dim()), d.NewVector(net.Dim())
	d.Write(x, task.Params)
	if p == FP16 {
		d.SetLossScale(g, device.LossScale{Scale: task.Scale, Good: task.Good})
	}
	for i, b := range task.Batches {
		out := make([]float64, len(plan.Code().Results))
		before, _ := d.LossScale(g)
		if err := program.Run(x, g, device.Batch{X: b.X, Y: b.Y}, out); err != nil {
			t.Fatal(fmt.Errorf("iteration %d: %w", i, err))
		}
		rate := task.Rate
		if norm := math.Sqrt(device.InnerProduct(d, g, g)); task.Clip > 0 && norm > task.Clip {
			rate *= task.Clip / norm
		}
		d.Do(device.Combine(x, device.Term{A: 1, V: x}, device.Term{A: -rate, V: g}))
		after, _ := d.LossScale(g)
		if p == BF16 {
			after.Scale = 1
		}
		r.Losses, r.Scales, r.Skipped = append(r.Losses, out[0]), append(r.Scales, after.Scale), append(r.Skipped,
			after.Skipped > before.Skipped)
	}
	r.Params = make([]float32, net.Dim())
	d.Read(r.Params, x)
	return r
}
