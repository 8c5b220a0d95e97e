package model

import (
	"slices"

	"fspda/device"
)

// Description holds the facts about a model that training needs besides its functions. Its zero
// value is a model without parameters.
type Description struct {
	Tensors []Tensor // The tensors of the flat parameter vector, in order.
	Buffers []int    // The lengths of the buffers of batch norm; nil if there is none.
	// Undecayed lists the coordinates without weight decay, ascending.
	Undecayed []uint32
	// Window is the number of tokens of an example, each with a label; 0 if examples are not windows
	// of tokens.
	Window int
	// Mixed reports that the loss knows examples with a second class: see device.Mix.
	Mixed bool
	// L2 returns the L2 term of the loss at x; nil if it is not known.
	L2 func(x []float32) float64
	// WeightDecay is the coefficient of the L2 term, 0 where weight decay is decoupled.
	WeightDecay float64
	// Operations returns the floating-point operations of the matrix products of the gradient of a
	// batch, two for a multiply-add; nil if they are not known.
	Operations func(batch int) (float64, error)
	// Normed returns the fewest values of a channel that a batch norm averages in the gradient of a
	// batch, 0 without batch norm; nil if that is not known.
	Normed func(batch int) (int, error)
	// Memory returns the bytes of a program for the gradient of a batch, and of one that scores a
	// number of examples; nil if they are not known.
	Memory func(batch, scored int) (gradient, score uint64, err error)
}

// Sizes lists the lengths of the tensors, in order.
func (d Description) Sizes() (sizes []int) {
	for _, t := range d.Tensors {
		sizes = append(sizes, t.Size)
	}
	return sizes
}

// Vectors describes a flat vector of unnamed vectors of these lengths.
func Vectors(sizes ...int) (tensors []Tensor) {
	offset := 0
	for _, n := range sizes {
		tensors = append(tensors, Tensor{Shape: []int{n}, Offset: offset, Size: n})
		offset += n
	}
	return tensors
}

// Describe returns the facts about the network that training needs.
func (e *Engine) Describe() Description {
	d := Description{Tensors: e.layout.Tensors(), Undecayed: e.Undecayed(), L2: e.L2, WeightDecay: e.WeightDecay(),
		Operations: e.operations, Normed: e.normed, Memory: e.memory, Mixed: e.mixed}
	if e.buffers.dim > 0 {
		d.Buffers = slices.Clone(e.buffers.sizes())
	}
	if e.tokens {
		d.Window = e.inputs
	}
	return d
}

// operations is Description.Operations of the network.
func (e *Engine) operations(batch int) (float64, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p, err := e.plan(planKey{batch, 0, Train})
	if err != nil {
		return 0, err
	}
	return p.Code().FLOPs, nil
}

// normed is Description.Normed of the network.
func (e *Engine) normed(batch int) (fewest int, err error) {
	if e.buffers.dim == 0 {
		return 0, nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	p, err := e.plan(planKey{batch, 0, Step})
	if err != nil {
		return 0, err
	}
	for _, c := range p.Code().Calls {
		switch c.Kernel {
		case device.BatchNorm, device.BatchNormReLU, device.BatchNormAddReLU:
			if rows := c.Dims[0]; fewest == 0 || rows < fewest {
				fewest = rows
			}
		}
	}
	return fewest, nil
}

// memory is Description.Memory of the network.
func (e *Engine) memory(batch, scored int) (gradient, score uint64, err error) {
	step, with := Train, Score
	if e.buffers.dim > 0 {
		step, with = Step, ScoreWith
	}
	g, err := e.Footprint(batch, step)
	if err != nil {
		return 0, 0, err
	}
	s, err := e.Footprint(scored, with)
	return uint64(g), uint64(s), err
}
