package compiler

import (
	"fspda/cuda/cublas"
	"fspda/device"
)

// ReLUMask is a bit for each output of a dense layer that ReLU did not cut off. The forward task
// writes it and the gradient's task reads it, by cuBLASLt: the gradient then neither reads the
// output nor needs a kernel of its own. Both tasks share the mask.
type ReLUMask struct {
	Operand
	Gradient *Task // the LinearGradXReLU that reads it
}

// reluPairs returns the dense layers with ReLU, and for each the call that first takes the gradient
// of its output.
func (t *trace) reluPairs() map[*device.Call]*device.Call {
	makers, pairs := map[int]*device.Call{}, map[*device.Call]*device.Call{}
	for _, c := range t.calls {
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

// addMasks gives a mask to the two tasks of each pair. alloc makes its operand.
func addMasks(tasks []Task, pairs map[*device.Call]*device.Call, alloc func(bytes int) Operand) {
	taskOf := map[*device.Call]*Task{}
	for i := range tasks {
		if tasks[i].Work == Compute {
			taskOf[tasks[i].Call] = &tasks[i]
		}
	}
	for i := range tasks { // allocates in the order of the calls, so that plans are reproducible
		t := &tasks[i]
		if gradient := taskOf[pairs[t.Call]]; t.Work == Compute && gradient != nil {
			t.Mask = &ReLUMask{Operand: alloc(cublas.MaskBytes(t.Call.Dims[0], t.Call.Dims[1])), Gradient: gradient}
			gradient.Mask = t.Mask
		}
	}
}
