package model

import "fmt"

// OutwardShape is the shape that other programs give the tensor: filters are OIHW there.
func (t Tensor) TorchShape() []int {
	if t.Axes != OHWI {
		return t.Shape
	}
	return []int{t.Shape[0], t.Shape[3], t.Shape[1], t.Shape[2]}
}

// Outward writes the values of the tensor to dst in the order of other programs. Both have length
// Size; it panics otherwise.
func (t Tensor) ToTorch(dst, values []float32) {
	t.checkTurn(dst, values)
	if t.Axes != OHWI {
		copy(dst, values)
		return
	}
	t.permute(func(ours, theirs int) { dst[theirs] = values[ours] })
}

// Inward is the reverse of Outward: values in the order of other programs come to dst in ours.
func (t Tensor) FromTorch(dst, values []float32) {
	t.checkTurn(dst, values)
	if t.Axes != OHWI {
		copy(dst, values)
		return
	}
	t.permute(func(ours, theirs int) { dst[ours] = values[theirs] })
}

func (t Tensor) checkTurn(dst, values []float32) {
	if len(dst) != t.Size || len(values) != t.Size {
		panic(fmt.Sprintf("model: turning %d values of %s to %d, want %d", len(values), t.Name, len(dst), t.Size))
	}
}

// turn goes over a filter of outputs, places and inputs: each number lies at ours as OHWI and at
// theirs as OIHW.
func (t Tensor) permute(each func(ours, theirs int)) {
	outputs, places, inputs := t.Shape[0], t.Shape[1]*t.Shape[2], t.Shape[3]
	for o := range outputs {
		for p := range places {
			for i := range inputs {
				each((o*places+p)*inputs+i, (o*inputs+i)*places+p)
			}
		}
	}
}
