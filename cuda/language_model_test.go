package cuda

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"fspda/cuda/compiler"
	"fspda/device"
	"fspda/model"
)

// The model of a gradient of GPT-2 (124 million parameters, windows of 1,024 tokens) in bf16 on an
// H100, in seconds. Nothing of it was measured on a GPU. Every operand of every pass is moved once;
// a kernel takes as long as its bytes or its multiply-adds, whichever takes longer, and a gap. The
// assumptions:
//
//   - bytes: 85 % of the 3.35 TB/s of the data sheet;
//   - products by cuBLAS: 60 % of the dense peak of 989 TFLOP/s;
//   - attention: the multiply-adds of the tiles that attention_mma.cu computes, with their masked
//     parts, at 30 % of the peak. mma.sync reaches some 62 % of it on this GPU, and exponentials and
//     loads of fragments take as many cycles as products;
//   - a gap of 1.2 µs between kernels of a captured graph.
const (
	languageBandwidth = 0.85 * 3.35e12
	languageProducts  = 0.6 * 989e12 / 2 // multiply-adds a second
	languageAttention = 0.3 * 989e12 / 2
	languageGap       = 1.2e-6
	languageTarget    = 4.5e-6 // a token
)

// languageCost is the work of kernels.
type languageCost struct{ launches, bytes, products, seconds float64 }

func (c *languageCost) add(launches int, bytes, products, rate float64) {
	c.launches += float64(launches)
	c.bytes += bytes
	c.products += products
	c.seconds += max(bytes/languageBandwidth, products/rate) + float64(launches)*languageGap
}

// languageParts is the work of the parts of a step.
type languageParts map[string]*languageCost

// attentionProducts returns the multiply-adds of one of the products of attention: a warp computes
// blocks of `rows` rows, and whole steps of the other side.
func attentionProducts(windows, t, heads, width, rows, step int) (n float64) {
	for first := 0; first < t; first += rows {
		most := (first + rows + step - 1) / step * step // the steps that have an earlier key
		n += float64(rows * most)
	}
	return n * float64(windows*heads*width)
}

// add adds the work of a task to its part of a step.
func (all languageParts) add(t *compiler.Task) {
	bytes := 0.0
	for _, o := range slices.Concat(t.In, t.Out) {
		bytes += float64(o.Bytes())
	}
	if t.Rounded != nil {
		bytes += float64(t.Rounded.Bytes())
	}
	for _, s := range t.Casts {
		bytes += 4*float64(s.N) + 2*float64(s.N/s.C*s.Padded)
	}
	if t.Work != compiler.Compute {
		all["casts"].add(1, bytes, 0, 1)
		return
	}
	d, k := t.Call.Dims, t.Call.Kernel
	size := func(o compiler.Operand) float64 { return float64(o.Bytes()) }
	gradient := strings.Contains(string(k), "grad")
	switch {
	case k == device.Attention:
		all["attention"].add(1, bytes, 2*attentionProducts(d[0], d[1], d[2], d[3], 32, 64), languageAttention)
	case k == device.AttentionGrad: // both kernels read qkv and dy
		all["attention"].add(2, bytes+size(t.In[0])+size(t.In[3]),
			7*attentionProducts(d[0], d[1], d[2], d[3], 32, 32), languageAttention)
	case strings.Contains(string(k), "layer-norm") && gradient: // the sums of columns read x and dy again
		all["norms"].add(3, bytes+size(t.In[0])+size(t.In[1]), 0, 1)
	case strings.Contains(string(k), "layer-norm"):
		all["norms"].add(1, bytes, 0, 1)
	case k == device.SoftmaxCrossEntropy: // reads the logits twice
		all["loss"].add(2, bytes+size(t.In[0]), 0, 1)
	case strings.HasPrefix(string(k), "embed"):
		all["embedding"].add(1, bytes, 0, 1)
	}
	if strings.HasPrefix(string(k), "linear") || strings.HasPrefix(string(k), "product") {
		all["products"].add(1, bytes, float64(d[0])*float64(vocabulary(t))*float64(d[2]), languageProducts)
	}
}

// docs/performance.md quotes these numbers.
func TestModelOfGPT2(t *testing.T) {
	net, err := model.Open("gpt2", model.Options{Classes: 50257})
	if err != nil {
		t.Fatal(err)
	}
	const windows, tokens = 8, 8 * 1024
	code, err := net.Plan(windows, model.Step)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := compiler.Compile(code.Code(), compiler.Options{Precision: BF16, Epilogues: true})
	if err != nil {
		t.Fatal(err)
	}
	parts := languageParts{"attention": {}, "casts": {}, "embedding": {}, "loss": {}, "norms": {},
		"optimizer": {}, "products": {}}
	for i := range plan.Tasks {
		parts.add(&plan.Tasks[i])
	}
	// a step of AdamW: the norm of the gradient, its direction with both moments, and the step
	parts["optimizer"].add(3, float64(net.Dim())*(4+4*7+4*3), 0, 1)
	var total languageCost
	var report strings.Builder
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		c := parts[name]
		fmt.Fprintf(&report, "%-20s %5.0f launches %8.1f KB %8.2f million multiply-adds %6.3f µs a token\n", name,
			c.launches, c.bytes/tokens/1e3, c.products/tokens/1e6, c.seconds/tokens*1e6)
		total.launches, total.bytes = total.launches+c.launches, total.bytes+c.bytes
		total.products, total.seconds = total.products+c.products, total.seconds+c.seconds
	}
	t.Logf("%s%-20s %5.0f launches %8.1f KB %8.2f million multiply-adds %6.3f µs a token", report.String(), "all",
		total.launches, total.bytes/tokens/1e3, total.products/tokens/1e6, total.seconds/tokens*1e6)
	if total.seconds/tokens > languageTarget {
		t.Errorf("%.2f µs a token, want %.2f at most", total.seconds/tokens*1e6, languageTarget*1e6)
	}
}

// The logits of GPT-2 take at most 2 GiB. For 40 windows they are computed in two pieces, for 16
// windows in one.
func TestLossPieces(t *testing.T) {
	net, err := model.Open("gpt2", model.Options{Classes: 50257})
	if err != nil {
		t.Fatal(err)
	}
	const rowBytes = 2 * 50304
	for windows, want := range map[int]int{8: 0, 16: 0, 40: 20 * 1024} {
		code, err := net.Plan(windows, model.Step)
		if err != nil {
			t.Fatal(err)
		}
		arenas := map[int]int{}
		rows := 0
		for _, most := range []int{0, 1 << 50} {
			o := compiler.Options{Precision: BF16, Epilogues: true, LossPiece: most}
			plan, err := compiler.Compile(code.Code(), o)
			if err != nil {
				t.Fatal(err)
			}
			arenas[most] = plan.Arena
			for _, task := range plan.Tasks {
				if task.Pieces != nil {
					rows = task.Pieces.Rows
				}
			}
		}
		saved := (windows*1024 - rows) * rowBytes
		if rows == 0 {
			saved = 0
		}
		if got := arenas[1<<50] - arenas[0]; rows != want || got > saved || got < saved*9/10 {
			t.Errorf("%d windows: pieces of %d rows, want %d; they save %d bytes, want %d", windows, rows, want, got,
				saved)
		}
	}
}

// In 16 bits no task rounds a gradient for itself, and the gradients of the biases of layers before
// a sum come from the gradients of the norms after it.
func TestNormsRoundGradients(t *testing.T) {
	net, err := model.Open("gpt2", model.Options{Classes: 50257})
	if err != nil {
		t.Fatal(err)
	}
	code, err := net.Plan(2, model.Step)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := compiler.Compile(code.Code(), compiler.Options{Precision: BF16, Epilogues: true})
	if err != nil {
		t.Fatal(err)
	}
	casts, rounded, sums, without := 0, 0, 0, 0
	for _, task := range plan.Tasks {
		switch {
		case task.Work == compiler.CastToHalf:
			casts++
		case task.Rounded != nil:
			rounded++
			if task.Sums != nil {
				sums++
			}
		case task.Work == compiler.Compute && task.Call.Kernel == device.LinearGradW && len(task.Out) == 1:
			without++
		}
	}
	if casts != 0 || rounded != 24 || sums != 24 || without != 24 {
		t.Errorf("%d casts, %d norms that round, %d with sums, %d products without; want 0 and 24 each", casts, rounded,
			sums, without)
	}
}
