package model

import (
	"fmt"
	"slices"

	"gorgonia.org/gorgonia"

	"fspda/device"
)

// Kind selects the computation of a graph or a plan.
type Kind uint8

const (
	// Train computes the result "loss", the mean cross entropy of the batch plus the weight decay
	// term, and its gradient.
	Train Kind = iota
	// Score computes sums over the labels of the batch: the results "loss_sum" (cross entropies,
	// without weight decay), "hits" and "hits5". Batch norm takes the statistics of the batch.
	Score
	// Step is Train and updates the buffers with the statistics of the batch.
	Step
	// Observe only updates the buffers with the statistics of the batch.
	Observe
	// ScoreWith is Score with the buffers as statistics.
	ScoreWith
	// Predict computes the logits, batch × classes results "logit", with the buffers as statistics.
	Predict
	// Next computes the logits of the last token of each window, batch × classes results "logit".
	Next
	// Continue is Next for a part of one window: an example is its tokens, and its label the position
	// of the first. The buffers hold the keys and values of earlier positions, and get the part's.
	Continue
	kinds
)

var kindNames = [kinds]string{"train", "score", "step", "observe", "score-with", "predict", "next", "continue"}

func (k Kind) String() string {
	if k < kinds {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// norm returns the source of the statistics of batch norm.
func (k Kind) norm() normMode {
	switch k {
	case Step, Observe:
		return moveBuffers
	case ScoreWith, Predict, Next:
		return fromBuffers
	}
	return fromBatch
}

// Network is a classifier: a function of a flat parameter vector and a batch of examples. It is
// immutable and may be used by several goroutines.
type Network struct {
	name    string
	inputs  int
	image   []int // height, width and channels; nil if examples are not images
	tokens  bool  // an example is a window of tokens, each with a label
	block   int   // the largest number of tokens of a window; 0: any
	classes int
	loss    LossOptions
	mixed   bool // training gives an example a second class: see Mixed
	layout  *Layout
	buffers *Layout
	factors []float64 // factors of the gradients by tensor; 0: frozen; nil: all are 1
	// recompute drops the intermediate values of blocks and recomputes them in the backward pass.
	recompute bool
	forward   func(b *builder, x *gorgonia.Node) *gorgonia.Node // examples to logits
}

// newNetwork builds a network once, which checks it and determines its layouts.
func newNetwork(n Network) (*Network, error) {
	b, err := n.Graph(1, Score, nil)
	if err != nil {
		return nil, err
	}
	n.layout, n.buffers = &b.builder.layout, &b.builder.buffers
	n.layout.markHidden()
	return &n, n.decayed()
}

// Name describes the network: "mlp 784-100-10 sigmoid".
func (n *Network) Name() string { return n.name }

// Inputs is the number of features per example.
func (n *Network) Inputs() int { return n.inputs }

// Image returns the height, width and channels of an example, or nil if examples are not images.
func (n *Network) Image() []int { return slices.Clone(n.image) }

// Tokens reports whether an example is a window of tokens: Inputs tokens, each of which predicts
// the next one. Classes is then the number of tokens in the vocabulary.
func (n *Network) Tokens() bool { return n.tokens }

// labels is the shape of the labels of an example, perhaps with a second class and a weight.
func (n *Network) labels(mixed bool) []int {
	switch {
	case n.tokens:
		return []int{n.inputs}
	case mixed:
		return []int{3}
	}
	return nil
}

// WithMixed returns the network with a loss of examples that have a second class: see device.Mix.
// Without one, an example has the same loss, to the bit.
func (n *Network) WithMixed() (*Network, error) {
	if n.tokens || n.forward == nil {
		return nil, fmt.Errorf("model: %s: its loss knows no examples of two classes, only that of a network of this "+
			"program that classifies pictures or numbers", n.name)
	}
	with := *n
	with.mixed = true
	return &with, nil
}

func (n *Network) Classes() int { return n.classes }

// Layout describes the flat parameter vector.
func (n *Network) Layout() *Layout { return n.layout }

// Buffers describes the flat buffer vector: for each batch norm its running_mean, then its
// running_var.
func (n *Network) Buffers() *Layout { return n.buffers }

// Dim is the number of parameters, the d of the paper.
func (n *Network) Dim() int { return n.layout.dim }

// WeightDecay is the coefficient of the L2 term of the loss; 0: it has none.
func (n *Network) WeightDecay() float64 { return n.loss.WeightDecay }

// L2 returns the L2 term of the loss at x: WeightDecay/2·Σx² over the decayed tensors.
func (n *Network) L2(x []float32) float64 {
	sum := 0.0
	for _, t := range n.layout.tensors {
		if t.Decay {
			for _, v := range x[t.Offset : t.Offset+t.Size] {
				sum += float64(float64(v) * float64(v))
			}
		}
	}
	return n.loss.WeightDecay / 2 * sum
}

// Plan compiles the network for batches of exactly that many examples. Plans of different batch
// sizes share the layout of the parameter vector. Compiling takes about a millisecond. It is safe
// for concurrent use.
func (n *Network) Plan(batch int, kind Kind) (*Plan, error) {
	g, err := n.Graph(batch, kind, nil)
	if err != nil {
		return nil, err
	}
	return g.Compile()
}

// Graph returns the network for batches of exactly that many examples as a Gorgonia graph,
// differentiated if kind is Train or Step. With a host, Gorgonia itself can evaluate the graph;
// Compile does not need one.
func (n *Network) Graph(batch int, kind Kind, host Host) (g *Graph, err error) {
	defer func() {
		if err != nil {
			g, err = nil, fmt.Errorf("model: building %s to %v with batch %d: %w", n.name, kind, batch, err)
		}
	}()
	if batch < 1 {
		return nil, fmt.Errorf("want at least 1 example in a batch")
	}
	if kind >= kinds {
		return nil, fmt.Errorf("unknown kind, want one of %v", kindNames)
	}
	if n.forward == nil {
		return nil, fmt.Errorf("another program computes it, and there is no graph of it")
	}
	if next := kind == Next || kind == Continue; next && !n.tokens || kind == Predict && n.tokens {
		return nil, fmt.Errorf("want kind %v for windows of tokens, kind %v for other examples", Next, Predict)
	}
	if kind == Continue && batch > 1 {
		return nil, fmt.Errorf("want a batch of 1")
	}
	b := newBuilder(host)
	defer b.rescue(&err)
	b.kind, b.decay, b.factors = kind, n.loss.Decay, n.factors
	x := b.input(device.Input, append([]int{batch}, n.example()...)...)
	var labels *gorgonia.Node
	g = &Graph{name: n.name, kind: kind, batch: batch, features: n.inputs, labels: size(n.labels(false)), builder: b,
		recompute: n.recompute}
	switch kind {
	case Observe, Predict, Next:
	case Continue:
		b.input(device.Labels, 1)
		g.labels = 1
	case Train, Step:
		b.mixed = n.mixed
		fallthrough
	default:
		labels = b.input(device.Labels, append([]int{batch}, n.labels(b.mixed)...)...)
	}
	logits := n.forward(b, x)
	switch kind {
	case Score, ScoreWith:
		b.layer = "score"
		sums := b.apply(device.Score, 0, logits, labels)
		g.results = []result{{"loss_sum", sums, 0}, {"hits", sums, 1}, {"hits5", sums, 2}}
	case Predict, Next, Continue:
		for i := range batch * n.classes {
			g.results = append(g.results, result{"logit", logits, i})
		}
	case Train, Step:
		loss := b.loss(logits, labels, n.loss)
		g.results = []result{{"loss", loss, 0}}
		g.grads = b.gradient(loss)
	}
	g.updates = b.updates
	return g, nil
}

func (n *Network) example() []int {
	if n.image != nil {
		return n.image
	}
	return []int{n.inputs}
}
