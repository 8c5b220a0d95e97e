package model

import (
	"sync"

	"fspda/device"
)

// Engine is a Network on a device: gradients and scores of any batch at any point, for any number of goroutines at once. It compiles
// one plan per batch size and kind on first use and keeps idle programs for the next caller, so that there are as many as are ever
// busy at once. It is what fspda/train calls a Model.
type Engine struct {
	*Network
	dev device.Device

	mu    sync.Mutex
	plans map[recipe]*Plan
	idle  map[recipe][]device.Program
}

// recipe is what a plan is compiled for.
type recipe struct {
	batch int
	kind  Kind
}

// NewEngine puts a network on a device.
func NewEngine(n *Network, dev device.Device) *Engine {
	return &Engine{Network: n, dev: dev, plans: map[recipe]*Plan{}, idle: map[recipe][]device.Program{}}
}

// Sizes lists the lengths of the parameter tensors in flat order.
func (e *Engine) Sizes() []int {
	var sizes []int
	for _, t := range e.Layout().Tensors() {
		sizes = append(sizes, t.Size)
	}
	return sizes
}

// Grad writes the gradient of the mean loss over the batch at x, L2 term included, to dst and returns that loss.
func (e *Engine) Grad(dst, x device.Vector, b device.Batch) (loss float64, err error) {
	var out [1]float64
	err = e.run(Train, x, dst, b, out[:])
	return out[0], err
}

// Score adds up over the batch at x: cross entropy without the L2 term, hits, and hits among the five largest.
func (e *Engine) Score(x device.Vector, b device.Batch) (loss, hits, hits5 float64, err error) {
	var out [3]float64
	err = e.run(Score, x, nil, b, out[:])
	return out[0], out[1], out[2], err
}

func (e *Engine) run(kind Kind, x, grad device.Vector, b device.Batch, out []float64) error {
	r := recipe{b.N(), kind}
	p, err := e.take(r)
	if err != nil {
		return err
	}
	defer e.give(r, p)
	return p.Run(x, grad, b, out)
}

// take lends a program, a new one if all are busy.
func (e *Engine) take(r recipe) (device.Program, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if free := e.idle[r]; len(free) > 0 {
		e.idle[r] = free[:len(free)-1]
		return free[len(free)-1], nil
	}
	plan := e.plans[r]
	if plan == nil {
		var err error
		if plan, err = e.Plan(r.batch, r.kind); err != nil {
			return nil, err
		}
		e.plans[r] = plan
	}
	return e.dev.Load(plan.Code())
}

func (e *Engine) give(r recipe, p device.Program) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.idle[r] = append(e.idle[r], p)
}
