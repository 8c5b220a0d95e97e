package train

import "fmt"

// ending is the end of the agents' work as the collector saw it.
type ending struct {
	iteration int // iteration is the latest one whose snapshots were complete.
	// interrupted says that a row was abandoned because the run is to stop: nothing counts after it.
	interrupted bool
}

// length returns the iteration at whose head the run ends, unless it is stopped or diverges.
func (r *run) length() int { return r.setup.Config.Iterations }

// finish decides how the run ended: it diverged, reached its length, or was stopped.
func (r *run) finish(res *Result, end ending) error {
	res.Iteration = end.iteration
	lost := r.divergence()
	switch {
	case lost != nil:
		res.lose(lost)
		res.dropModels()
	case end.iteration == r.length() && !end.interrupted:
		res.Status = Finished
	case end.iteration == r.progress.stop || end.interrupted:
		res.stop(end.iteration)
	default:
		return fmt.Errorf("train: the agents stopped at iteration %d of %d for no known reason", end.iteration,
			r.length())
	}
	return nil
}

// lose makes res the result of a run that diverged.
func (res *Result) lose(lost *DivergedError) {
	res.Status, res.Diverged, res.Iteration = Diverged, lost, lost.T
}

// stop makes res the result of a run that was stopped at an iteration.
func (res *Result) stop(iteration int) {
	res.Status, res.Iteration = Stopped, iteration
	res.dropModels()
}

// dropModels removes the models of a run that did not finish.
func (res *Result) dropModels() {
	res.Models, res.Mean, res.Buffers, res.MeanBuffers = nil, nil, nil, nil
}
