package model

import (
	"strings"
	"testing"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"fspda/cpu"
	"fspda/device"
)

func TestProjectionIsASideOutput(t *testing.T) {
	b := newBuilder(cpu.Call)
	kernel := b.apply(device.LinearGradW, 0, b.param("x", 1, 2, 3), b.param("dy", 1, 2, 1))
	p := b.project(kernel, 1)
	if p.Op().Arity() != 1 || !p.Shape().Eq(tensor.Shape{1}) {
		t.Errorf("projection of arity %d and shape %v", p.Op().Arity(), p.Shape())
	}
	if _, err := p.Op().Do(); err == nil || !strings.Contains(err.Error(),
		"linear-grad-w#1.1 is read before its kernel ran") {
		t.Errorf("reading too early: error %v", err)
	}
	x, dy := denseOf([]float32{1, 2, 3, 4, 5, 6}, tensor.Shape{2, 3}), denseOf([]float32{10, 1}, tensor.Shape{2, 1})
	first, err := kernel.Op().Do(x, dy)
	if err != nil {
		t.Fatal(err)
	}
	if dW := first.Data().([]float32); dW[0] != 14 || dW[1] != 25 || dW[2] != 36 {
		t.Errorf("dW is %v", dW)
	}
	second, err := p.Op().Do(first)
	if err != nil {
		t.Fatal(err)
	}
	if db := second.Data().([]float32); len(db) != 1 || db[0] != 11 {
		t.Errorf("db is %v, want 11", db)
	}
}

// A gradient through an output other than 0 would be lost, so it must not exist.
func TestProjectionHasNoDerivative(t *testing.T) {
	_, err := testGraph(3, 4, nil, func(b *builder) *gorgonia.Node {
		return b.apply(device.HalfSquare, 1, b.project(crossEntropy(b), 1))
	})
	if err == nil || !strings.Contains(err.Error(), "parameter logits has no path to the loss") {
		t.Errorf("error %v", err)
	}
	o := &projection{}
	if by := o.DiffWRT(1); len(by) != 1 || by[0] {
		t.Errorf("differentiable by %v, want by nothing", by)
	}
	if grads, err := o.SymDiff(nil, nil, nil); err != nil || len(grads) != 1 || grads[0] != nil {
		t.Errorf("SymDiff gave %v, %v", grads, err)
	}
}
