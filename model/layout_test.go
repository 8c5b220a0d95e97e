package model

import (
	"strings"
	"testing"
)

func TestLayoutIsPackedAndNamed(t *testing.T) {
	for _, net := range nets(t) {
		offset := 0
		seen := map[string]bool{}
		for _, tensor := range net.Layout().Tensors() {
			if tensor.Offset != offset {
				t.Errorf("%s: %s begins at %d, want %d: no padding", net.Name(), tensor.Name, tensor.Offset, offset)
			}
			if tensor.Size != size(tensor.Shape) || seen[tensor.Name] || !tensor.Decay {
				t.Errorf("%s: bad entry %+v", net.Name(), tensor)
			}
			seen[tensor.Name] = true
			offset += tensor.Size
			if got, ok := net.Layout().Tensor(tensor.Name); !ok || got.Offset != tensor.Offset {
				t.Errorf("%s: Tensor(%q) is %+v, %v", net.Name(), tensor.Name, got, ok)
			}
		}
		if offset != net.Dim() || net.Layout().Dim() != net.Dim() {
			t.Errorf("%s: tensors end at %d, Dim is %d", net.Name(), offset, net.Dim())
		}
	}
}

func TestLayoutHandsOutCopies(t *testing.T) {
	l := nets(t)[0].Layout()
	l.Tensors()[0].Shape[0] = 99
	one, _ := l.Tensor("fc1.weight")
	one.Shape[0] = 98
	if got := l.Tensors()[0].Shape[0]; got != 3 {
		t.Errorf("a caller changed the layout: first dimension is %d", got)
	}
	if _, ok := l.Tensor("fc9.weight"); ok {
		t.Error("found a tensor that does not exist")
	}
}

func TestViewSharesMemory(t *testing.T) {
	net := nets(t)[0]
	flat := make([]float32, net.Dim())
	bias := net.Layout().View(flat, "fc1.bias")
	bias[1] = 7
	if flat[15+1] != 7 || len(bias) != 3 || cap(bias) != 3 {
		t.Errorf("view of length %d, capacity %d; flat is %v", len(bias), cap(bias), flat)
	}
	for _, c := range []struct {
		length     int
		name, want string
	}{{net.Dim() - 1, "fc1.bias", "length 17"}, {net.Dim(), "fc7.bias", "fc7.bias"}} {
		func() {
			defer func() {
				if r, _ := recover().(string); !strings.HasPrefix(r, "model: ") || !strings.Contains(r, c.want) {
					t.Errorf("View(%d numbers, %s) panicked with %q, want it to say %q", c.length, c.name, r, c.want)
				}
			}()
			net.Layout().View(make([]float32, c.length), c.name)
		}()
	}
}
