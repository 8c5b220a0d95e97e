package model

import "fmt"

// TorchShape returns the shape of the tensor in PyTorch, where filters are OIHW.
func (t Tensor) TorchShape() []int {
	if t.Axes != OHWI {
		return t.Shape
	}
	return []int{t.Shape[0], t.Shape[3], t.Shape[1], t.Shape[2]}
}

// ToTorch copies the values of the tensor to dst in PyTorch's order. Both must have length Size;
// otherwise it panics.
func (t Tensor) ToTorch(dst, values []float32) {
	t.permute(dst, values, func(ours, theirs int) { dst[theirs] = values[ours] })
}

// FromTorch is the inverse of ToTorch: it copies values in PyTorch's order to dst.
func (t Tensor) FromTorch(dst, values []float32) {
	t.permute(dst, values, func(ours, theirs int) { dst[ours] = values[theirs] })
}

// permute enumerates the elements of a filter: each is at index ours in OHWI and theirs in OIHW.
// Another tensor it copies.
func (t Tensor) permute(dst, values []float32, each func(ours, theirs int)) {
	if len(dst) != t.Size || len(values) != t.Size {
		panic(fmt.Sprintf("model: permuting %d values of %s to %d, want %d", len(values), t.Name, len(dst), t.Size))
	}
	if t.Axes != OHWI {
		copy(dst, values)
		return
	}
	outputs, places, inputs := t.Shape[0], t.Shape[1]*t.Shape[2], t.Shape[3]
	for o := range outputs {
		for p := range places {
			for i := range inputs {
				each((o*places+p)*inputs+i, (o*inputs+i)*places+p)
			}
		}
	}
}
