package cuda

import (
	"encoding/binary"
	"math"

	"fspda/cuda/cublas"
	"fspda/cuda/driver"
	"fspda/cuda/kernels"
	"fspda/device"
)

// mask says which numbers of a dense layer's output were not cut off by ReLU, a bit each. cuBLASLt writes it beside the output, and reads it in the
// backward pass, which then neither reads the output nor needs a kernel of its own. Both tasks share it.
type mask struct {
	operand
	gradient *task          // device.LinearGradXReLU
	by       *cublas.Matmul // computes the gradient; nil: nothing writes the mask
}

// denseReLU is a dense layer, f, with its ReLU by cuBLASLt, with a mask where the gradient can use one. Nil says that there is no algorithm for it, or none that
// keeps what is not a number.
func (d *Device) denseReLU(t *task, f fused) *cublas.Matmul {
	if t.mask != nil {
		f.epilogue, f.mask = cublas.WithBiasReLUMask, &t.mask.operand
		if by := d.keepingNaN(t, f); by != nil {
			if t.mask.by = d.maskedGradX(t.mask.gradient); t.mask.by != nil {
				return by
			}
		}
	}
	f.epilogue, f.mask = cublas.WithBiasReLU, nil
	return d.keepingNaN(t, f)
}

// maskedGradX is device.LinearGradXReLU by cuBLASLt.
func (d *Device) maskedGradX(t *task) *cublas.Matmul {
	n := t.call.Dims
	return d.matmul(t, fused{m: n[0], n: n[2], k: n[1], a: factor{in: 0}, b: factor{in: 1}, epilogue: cublas.Masked, mask: &t.mask.operand})
}

// maskedGradXBy is its step.
func maskedGradXBy(by *cublas.Matmul, t *task) step {
	return func(r *running) error {
		x := r.operands(t)
		return by.Run(driver.Pointer(x.in[0]), driver.Pointer(x.in[1]), driver.Pointer(x.out[0]), r.beside(t))
	}
}

// keepingNaN is a product with ReLU whose algorithm keeps what is not a number, or nil. Libraries have been seen to make 0 of it, which would hide a network
// that has diverged: its loss would be a number again.
func (d *Device) keepingNaN(t *task, f fused) *cublas.Matmul {
	made := d.matmul(t, f)
	if made == nil {
		return nil
	}
	kept := false
	err := d.owner.ask(func() (err error) {
		kept, err = d.owner.keepsNaN(made, t, f)
		return err
	})
	if err != nil || !kept { // without memory to try it in, the other way is taken
		return nil
	}
	return made
}

// keepsNaN tries a product on zeros, with a bias that is not a number.
func (o *owner) keepsNaN(by *cublas.Matmul, t *task, f fused) (bool, error) {
	c := &t.out[0]
	sizes := []int{t.in[f.a.in].bytes(), t.in[f.b.in].bytes(), c.bytes(), f.bias.bytes(), cublas.MaskBytes(f.m, f.n)}
	at, end, err := o.lend(sizes...)
	if err != nil {
		return false, err
	}
	defer end()
	for i, fill := range []uint8{0, 0, 0, 0xff, 0} {
		if err := o.api.Check(o.api.MemsetD8(at[i], fill, uintptr(sizes[i]), o.stream), "cuMemsetD8Async", "filling %d bytes", sizes[i]); err != nil {
			return false, err
		}
	}
	if err := by.Run(at[0], at[1], at[2], cublas.Beside{Bias: at[3], Mask: at[4]}); err != nil {
		return false, err
	}
	host, err := o.newBuffer(classOfBuffer(4))
	if err != nil {
		return false, err
	}
	defer o.pinned.give(host)
	if err := o.api.Check(o.api.MemcpyDtoH(host.pointer(), at[2], uintptr(c.element.Size()), o.stream), "cuMemcpyDtoHAsync", "copying a number from the GPU"); err != nil {
		return false, err
	}
	if err := o.synchronize(); err != nil {
		return false, err
	}
	return isNaN(c.element, host.bytes), nil
}

// isNaN says whether the first number of b is none.
func isNaN(e kernels.Element, b []byte) bool {
	short := binary.LittleEndian.Uint16(b) & 0x7fff
	switch e {
	case kernels.F16:
		return short > 0x7c00
	case kernels.BF16:
		return short > 0x7f80
	}
	v := float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	return v != v
}

// reluPairs are the dense layers with ReLU, and for each the call that first takes the derivative of its output.
func (t *trace) reluPairs() map[*device.Call]*device.Call {
	makers, pairs := map[int]*device.Call{}, map[*device.Call]*device.Call{}
	for i := range t.calls {
		c := &t.calls[i]
		if c.call.Kernel == device.LinearReLU && c.out[0].value >= 0 {
			makers[c.out[0].value] = c.call
		}
		if c.call.Kernel != device.LinearGradXReLU || c.in[2].value < 0 {
			continue
		}
		if maker := makers[c.in[2].value]; maker != nil && pairs[maker] == nil {
			pairs[maker] = c.call
		}
	}
	return pairs
}

// addMasks gives tasks that are such pairs masks, whose operands are made by room.
func addMasks(tasks []task, pairs map[*device.Call]*device.Call, room func(bytes int) operand) {
	of := map[*device.Call]*task{}
	for i := range tasks {
		if tasks[i].work == compute {
			of[tasks[i].call] = &tasks[i]
		}
	}
	for i := range tasks { // in the order of the calls
		t := &tasks[i]
		if gradient := of[pairs[t.call]]; t.work == compute && gradient != nil {
			t.mask = &mask{operand: room(cublas.MaskBytes(t.call.Dims[0], t.call.Dims[1])), gradient: gradient}
			gradient.mask = t.mask
		}
	}
}
