package model

import (
	"errors"
	"hash/fnv"
	"strings"
	"testing"

	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"fspda/cpu"
	"fspda/device"
)

// Two additions of the same tensors are two nodes: Gorgonia would silently merge equal ones.
func TestOperationsAreNeverMerged(t *testing.T) {
	b := newBuilder(nil)
	x := b.param("x", 1, 3)
	first, second := b.apply(device.Scale, 2, x), b.apply(device.Scale, 2, x)
	if first == second {
		t.Error("two applications gave one node")
	}
	seen := map[uint32]bool{}
	loss := crossEntropy(b)
	for _, n := range []*gorgonia.Node{first, second, loss, b.project(loss, 1), b.project(loss, 1)} {
		h := fnv.New32a()
		n.Op().WriteHash(h)
		if seen[h.Sum32()] || seen[n.Op().Hashcode()] {
			t.Errorf("%v has the hash of another operation", n.Op())
		}
		seen[h.Sum32()], seen[n.Op().Hashcode()] = true, true
	}
}

// Gorgonia returns types to a pool, which empties them.
func TestTypeIsFresh(t *testing.T) {
	b := newBuilder(nil)
	loss := crossEntropy(b)
	for _, o := range []gorgonia.Op{loss.Op(), b.project(loss, 1).Op()} {
		before := o.Type().(*hm.FunctionType)
		text := before.String()
		hm.ReturnFnType(before)
		if after := o.Type().String(); after != text {
			t.Errorf("%v: type %s, was %s before it was returned", o, after, text)
		}
	}
}

func TestInferShapeNamesTheKernel(t *testing.T) {
	b := newBuilder(nil)
	o := b.apply(device.Add, 0, b.param("x", 1, 3), b.param("y", 1, 3)).Op()
	_, err := o.InferShape(tensor.Shape{3}, tensor.Shape{4})
	if err == nil || !strings.Contains(err.Error(), "add: inputs of shapes [(3) (4)] do not fit") {
		t.Errorf("error %v", err)
	}
	if s, err := o.InferShape(tensor.Shape{5, 2}, tensor.Shape{5, 2}); err != nil || !s.Eq(tensor.Shape{5, 2}) {
		t.Errorf("shape %v, error %v", s, err)
	}
}

func TestDo(t *testing.T) {
	failing := func(*device.Call, [][]float32, [][]float32) error { return errors.New("out of order") }
	three := denseOf([]float32{1, 2, 3}, tensor.Shape{3})
	for _, c := range []struct {
		host  Host
		input gorgonia.Value
		want  string // in the error; none for success
	}{
		{cpu.Call, three, ""},
		{nil, three, "built without a Host"},
		{failing, three, "running scale of layer doubling: out of order"},
		{cpu.Call, denseOf([]float32{1, 2}, tensor.Shape{2}), "want 3 float32"},
		{cpu.Call, tensor.New(tensor.WithBacking([]float64{1, 2, 3})), "input 0 of scale in layer doubling"},
	} {
		b := newBuilder(c.host)
		x := b.param("x", 1, 3)
		b.layer = "doubling"
		v, err := b.apply(device.Scale, 2, x).Op().Do(c.input)
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want it to say %q", err, c.want)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := v.Data().([]float32); got[0] != 2 || got[1] != 4 || got[2] != 6 {
			t.Errorf("2·(1,2,3) is %v", got)
		}
	}
}

// The answers that keep Gorgonia's machine from overwriting a value.
func TestOperationsKeepTheirInputs(t *testing.T) {
	b := newBuilder(nil)
	loss := crossEntropy(b)
	for _, o := range []gorgonia.Op{loss.Op(), b.project(loss, 1).Op()} {
		if o.OverwritesInput() != -1 || !o.ReturnsPtr() || o.CallsExtern() {
			t.Errorf("%v: overwrites %d, returns its own memory: %v, calls C: %v", o, o.OverwritesInput(),
				o.ReturnsPtr(), o.CallsExtern())
		}
	}
	if loss.Op().Arity() != 2 {
		t.Errorf("arity %d of a kernel with two inputs", loss.Op().Arity())
	}
}
