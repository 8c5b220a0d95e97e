package cuda

import "fmt"

// Routes lists what computes the convolutions, in the order of the calls: an algorithm of cuDNN's,
// or an engine of its graph API with its settings. It is for people.
func (p *Program) Routes() []string {
	var all []string
	_ = p.device.exec.Do(func() error { // after a loss of the device there is nothing to tell
		for _, r := range p.routes {
			all = append(all, fmt.Sprintf("%s %v: %s", r.task.Call.Kernel, r.task.Call.Dims, r.conv.Route()))
		}
		return nil
	})
	return all
}
