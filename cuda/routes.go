package cuda

import "fmt"

// Routes lists what computes the convolutions, in the order of the calls: an algorithm of cuDNN's,
// or an engine of its graph API with its settings. It is for people.
func (p *Program) Routes() []string {
	var all []string
	_ = p.device.exec.do(func() error { // after a loss of the device there is nothing to tell
		for i := range p.plan.tasks {
			if t := &p.plan.tasks[i]; t.route != nil {
				all = append(all, fmt.Sprintf("%s %v: %s", t.call.Kernel, t.call.Dims, t.route()))
			}
		}
		return nil
	})
	return all
}
