package model

import (
	"math"
	"strings"
	"testing"
)

func TestParameterCounts(t *testing.T) {
	for _, c := range []struct {
		hidden []int
		want   int
	}{{[]int{100}, 79510}, {nil, 7850}, {[]int{64, 32}, 784*64 + 64 + 64*32 + 32 + 32*10 + 10}} {
		net, err := MLP(MLPOptions{Inputs: 784, Classes: 10, Hidden: c.hidden})
		if err != nil {
			t.Fatal(err)
		}
		if net.Dim() != c.want {
			t.Errorf("hidden %v: %d parameters, want %d", c.hidden, net.Dim(), c.want)
		}
	}
}

func TestMLPRefuses(t *testing.T) {
	good := MLPOptions{Inputs: 4, Classes: 3, Hidden: []int{5}}
	for want, spoil := range map[string]func(*MLPOptions){
		"Inputs is 0":                      func(o *MLPOptions) { o.Inputs = 0 },
		"Classes is 1, want 2":             func(o *MLPOptions) { o.Classes = 1 },
		"Classes is 16777217":              func(o *MLPOptions) { o.Classes = 1<<24 + 1 },
		"Hidden[1] is -2":                  func(o *MLPOptions) { o.Hidden = []int{4, -2} },
		`Activation is "gelu", want`:       func(o *MLPOptions) { o.Activation = "gelu" },
		"WeightDecay is NaN":               func(o *MLPOptions) { o.WeightDecay = math.NaN() },
		"WeightDecay is -0.1":              func(o *MLPOptions) { o.WeightDecay = -0.1 },
		"WeightDecay is +Inf":              func(o *MLPOptions) { o.WeightDecay = math.Inf(1) },
		"layer fc1: fc1.weight has shape ": func(o *MLPOptions) { o.Inputs, o.Hidden[0] = 1<<24, 1<<24 },
	} {
		o := good
		o.Hidden = append([]int(nil), good.Hidden...)
		spoil(&o)
		if net, err := MLP(o); net != nil || err == nil || !strings.HasPrefix(err.Error(), "model: ") ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("network %v, error %v, want it to say %q", net, err, want)
		}
	}
}

func TestMLPKeepsNothingOfTheCaller(t *testing.T) {
	hidden := []int{5}
	net, err := MLP(MLPOptions{Inputs: 4, Classes: 3, Hidden: hidden})
	if err != nil {
		t.Fatal(err)
	}
	hidden[0] = 9
	if p := mustPlan(t, net, 2, Train); p.Code().Dim != net.Dim() {
		t.Errorf("plan of %d parameters for a network of %d", p.Code().Dim, net.Dim())
	}
}

// reference is the same network as plain loops in float64, written from the formulas: logits layer
// by layer, softmax, the chain rule.
type reference struct {
	widths []int // from inputs to classes
	relu   bool
	decay  float64
}

func (w reference) run(params, x []float64, labels []int32) (loss, crossEntropies float64, grad []float64) {
	grad = make([]float64, len(params))
	for i, p := range params {
		loss += w.decay / 2 * p * p
		grad[i] = w.decay * p
	}
	m := len(labels)
	for s, label := range labels {
		ce := w.example(params, x[s*w.widths[0]:(s+1)*w.widths[0]], int(label), 1/float64(m), grad)
		crossEntropies += ce
		loss += ce / float64(m)
	}
	return loss, crossEntropies, grad
}

// example adds weight times the gradient of one example, and returns its cross entropy.
func (w reference) example(params, x []float64, label int, weight float64, grad []float64) float64 {
	layers := len(w.widths) - 1
	acts, offsets, off := [][]float64{x}, []int{}, 0
	for l := range layers {
		k, n := w.widths[l], w.widths[l+1]
		y := make([]float64, n)
		for j := range y {
			y[j] = params[off+n*k+j]
			for i, v := range acts[l] {
				y[j] += params[off+j*k+i] * v
			}
			if l < layers-1 {
				y[j] = w.activate(y[j])
			}
		}
		acts, offsets, off = append(acts, y), append(offsets, off), off+n*k+n
	}
	delta, ce := softmax(acts[layers], label)
	for l := layers - 1; l >= 0; l-- {
		k, n := w.widths[l], w.widths[l+1]
		back := make([]float64, k)
		for j, d := range delta {
			grad[offsets[l]+n*k+j] += weight * d
			for i, v := range acts[l] {
				grad[offsets[l]+j*k+i] += weight * d * v
				back[i] += d * params[offsets[l]+j*k+i]
			}
		}
		for i, y := range acts[l] {
			back[i] *= w.slope(y)
		}
		delta = back
	}
	return ce
}

func (w reference) activate(v float64) float64 {
	if w.relu {
		return max(v, 0)
	}
	return 1 / (1 + math.Exp(-v))
}

// slope returns the derivative of the activation at output y.
func (w reference) slope(y float64) float64 {
	switch {
	case !w.relu:
		return y * (1 - y)
	case y > 0:
		return 1
	}
	return 0
}

// softmax returns the cross entropy and its derivative by the logits.
func softmax(logits []float64, label int) (delta []float64, ce float64) {
	sum := 0.0
	for _, v := range logits {
		sum += math.Exp(v)
	}
	for _, v := range logits {
		delta = append(delta, math.Exp(v)/sum)
	}
	delta[label]--
	return delta, math.Log(sum) - logits[label]
}

func twinOf(n *Network) reference {
	w := reference{widths: []int{n.inputs}, relu: strings.HasSuffix(n.name, "relu"), decay: n.loss.WeightDecay}
	for _, t := range n.layout.tensors {
		if strings.HasSuffix(t.Name, ".bias") {
			w.widths = append(w.widths, t.Size)
		}
	}
	return w
}

// The plan, in float64, computes the loss, gradient and scores of the plain loops, up to the order
// of sums.
func TestPlanIsItsReference(t *testing.T) {
	const tolerance = 1e-12
	for _, net := range nets(t) {
		for _, batch := range batches {
			params, x := random(net.Dim(), 3), random(batch*net.inputs, 4)
			labels := randomLabels(batch, net.classes, 5)
			loss, ce, grad := twinOf(net).run(params, x, labels)
			results, got := run64(mustPlan(t, net, batch, Train).Code(), params, x, labels)
			if !(math.Abs(results[0]-loss) <= tolerance*loss) {
				t.Errorf("%s: loss %v, want %v", label(net, batch), results[0], loss)
			}
			for i := range grad {
				if !(math.Abs(got[i]-grad[i]) <= tolerance*(1+math.Abs(grad[i]))) {
					t.Errorf("%s: derivative by parameter %d is %v, want %v", label(net, batch), i, got[i], grad[i])
				}
			}
			scores, _ := run64(mustPlan(t, net, batch, Score).Code(), params, x, labels)
			if !(math.Abs(scores[0]-ce) <= tolerance*ce) {
				t.Errorf("%s: sum of cross entropies %v, want %v", label(net, batch), scores[0], ce)
			}
			// all of 3 classes are among the top 5
			if scores[1] > scores[2] || scores[2] != float64(batch) {
				t.Errorf("%s: %v hits, %v among 5 of 3 classes", label(net, batch), scores[1], scores[2])
			}
		}
	}
}

// The gradient of every network agrees with finite differences of its own loss.
func TestGradientByFiniteDifferences(t *testing.T) {
	for _, net := range nets(t) {
		for _, batch := range batches {
			t.Run(label(net, batch), func(t *testing.T) {
				code := mustPlan(t, net, batch, Train).Code()
				checkGradient(t, code, random(net.Dim(), 6), random(batch*net.inputs, 7),
					randomLabels(batch, net.classes, 8))
			})
		}
	}
}
