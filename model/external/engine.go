package external

import (
	"errors"
	"fmt"

	"fspda/data"
	"fspda/device"
	"fspda/model"
)

// Engine is a network that clients of a [Program] compute. It implements fspda/train.Model, as
// [model.Engine] does, and is safe for concurrent use: as many calls proceed at once as the Program
// has clients.
type Engine struct {
	*model.Network
	program *Program
	dev     device.Device
	host    device.Host
	example example
	about   *question
	test    *device.CacheKey // identifies the batches of test examples
	decayed []device.Range   // coordinates that the L2 term includes
	factors []factor         // step sizes of tensors that are not 1

	start, startBuffers []float32 // the initial vectors, where they were given
}

// factor is the relative step size of a tensor.
type factor struct {
	from, to int
	by       float64
}

// Examples describe the examples of a data set.
type Examples struct {
	Shape   []int
	Classes int
	Tokens  bool             // an example is a window of tokens
	Test    *device.CacheKey // The key of the test examples; nil if the client does not load examples.
}

// Description is the answer of a program to [Program.Ask].
type Description struct {
	model.External
	facts facts
}

func (e Examples) example() example {
	return example{Shape: e.Shape, Classes: e.Classes, Tokens: e.Tokens, Rows: e.Test != nil}
}

func (p *Program) Ask(e Examples) (d Description, err error) {
	of := e.example()
	err = p.do("model", nil, func(c *client) (request, error) {
		c.about = nil
		return request{Do: "model", Example: &of}, nil
	}, func(_ *client, a *answer) error {
		d.facts = a.facts
		return nil
	})
	d.External = model.External{Name: d.facts.Name, Parameters: d.facts.Parameters, Buffers: d.facts.Buffers,
		Tokens: d.facts.Tokens}
	return d, err
}

// Data returns the labels of the examples that a client loads itself.
func (p *Program) Data() (l data.Labels, err error) {
	err = p.do("data", nil, func(*client) (request, error) { return request{Do: "data"}, nil },
		func(_ *client, a *answer) error {
			if a.Train == nil || a.Test == nil {
				return errors.New("its answer has no labels of train, or of test")
			}
			l = data.Labels{Train: a.Train.Labels, Test: a.Test.Labels, Classes: a.Classes, ClassNames: a.Names}
			return nil
		})
	return l, err
}

// NewEngine runs a network, which model.Open made of a Description, on the vectors of a device,
// which are in memory of the host.
func NewEngine(n *model.Network, p *Program, d Description, e Examples, dev device.Device) *Engine {
	of := e.example()
	m := &Engine{Network: n, program: p, dev: dev, host: dev.Features().Host, example: of, test: e.Test,
		about: &question{request{Do: "model", Example: &of}, d.facts}}
	steps := n.Factors()
	for i, t := range n.Layout().Tensors() {
		from, to := t.Offset, t.Offset+t.Size
		if last := len(m.decayed) - 1; t.Decay && n.WeightDecay() > 0 && last >= 0 && m.decayed[last].To == from {
			m.decayed[last].To = to
		} else if t.Decay && n.WeightDecay() > 0 {
			m.decayed = append(m.decayed, device.Range{From: from, To: to})
		}
		if steps != nil && steps[i] != 1 {
			m.factors = append(m.factors, factor{from, to, steps[i]})
		}
	}
	return m
}

// StartFrom makes Init and InitBuffers return these vectors. Call it before any other method.
func (e *Engine) StartFrom(x, buffers []float32) {
	if len(x) != e.Dim() || len(buffers) != e.Buffers().Dim() {
		panic(fmt.Sprintf("external: StartFrom %d parameters and %d buffers, want %d and %d", len(x), len(buffers),
			e.Dim(), e.Buffers().Dim()))
	}
	e.start, e.startBuffers = x, buffers
}

// Describe returns the facts about the network that training needs.
func (e *Engine) Describe() model.Description {
	d := model.Description{Tensors: e.Layout().Tensors(), Undecayed: e.Undecayed(), L2: e.L2,
		WeightDecay: e.WeightDecay()}
	for _, t := range e.Buffers().Tensors() {
		d.Buffers = append(d.Buffers, t.Size)
	}
	if e.Tokens() {
		d.Window = e.Inputs()
	}
	return d
}
