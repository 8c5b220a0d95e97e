package cuda

import "fmt"

// Routes describes the implementations of the convolutions, in the order of the calls: an algorithm
// of cuDNN, an engine of its graph API with its knobs, or our own kernel that computes also the
// neighbouring kernels of batch normalisations, or why that failed.
func (p *Program) Routes() []string {
	var all []string
	_ = p.device.exec.Do(func() error { // after a loss of the GPU there is nothing to report
		for _, r := range p.routes {
			route := r.conv.Route()
			if r.fused {
				route = "fused with batch normalisations"
			} else if r.why != "" {
				route += "; not fused: " + r.why
			}
			all = append(all, fmt.Sprintf("%s %v: %s", r.task.Call.Kernel, r.task.Call.Dims, route))
		}
		return nil
	})
	return all
}
