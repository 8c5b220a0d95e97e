package cuda

import "fmt"

// Routes describes the implementations of the convolutions, in the order of the calls: an algorithm
// of cuDNN, an engine of its graph API with its knobs, or a matrix product.
func (p *Program) Routes() []string {
	var all []string
	_ = p.device.exec.Do(func() error { // if the GPU is lost, nothing is reported
		for _, r := range p.routes {
			all = append(all, fmt.Sprintf("%s %v: %s", r.task.Call.Kernel, r.task.Call.Dims, r.conv.Route()))
		}
		return nil
	})
	return all
}
