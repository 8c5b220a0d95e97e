package cpu

import (
	"testing"

	"gorgonia.org/gorgonia"
)

var _ gorgonia.VM = (*Bound)(nil)

func TestBound(t *testing.T) {
	p, x, grad, b := loaded(t, 4, 3, 5)
	want := make([]float64, 2)
	if err := p.Run(x, grad, b, want); err != nil {
		t.Fatal(err)
	}
	gradient := append([]float32{}, grad.Data...)
	clear(grad.Data)

	vm := p.Bind(x, grad, b)
	for range 2 {
		if err := vm.RunAll(); err != nil {
			t.Fatal(err)
		}
		for i := range want {
			if vm.Out[i] != want[i] {
				t.Errorf("result %d is %v, want %v", i, vm.Out[i], want[i])
			}
		}
		vm.Reset()
	}
	for i, g := range gradient {
		if grad.Data[i] != g {
			t.Fatalf("gradient %v at %d, want %v", grad.Data[i], i, g)
		}
	}
	b.Y[0] = -1
	if err := vm.RunAll(); err == nil {
		t.Error("label -1 is accepted")
	}
	if err := vm.Close(); err != nil {
		t.Error(err)
	}
}
