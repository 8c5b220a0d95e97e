package executor

import (
	"fmt"
	"slices"
	"time"
)

// watchdog notices cooperative launches that do not end: the thread blocks of such a launch wait
// for each other, so that it hangs where the GPU does not run all of them.
type watchdog struct {
	limit time.Duration // how long the GPU may take for the oldest work that is waited for
	since time.Time     // when the executor found it unfinished; zero: not yet
	hung  bool          // a launch has not ended: nothing waits for the GPU any more
}

// launchLimit is far above the time of an iteration of all agents of a GPU.
const launchLimit = 3 * time.Minute

// SeparateLaunchesVariable is an environment variable. If it is not empty, devices behave as with
// the option SeparateLaunches.
const SeparateLaunchesVariable = "FSPDA_CUDA_LAUNCHES"

// checkAge gives up the GPU if it has completed nothing for too long, with a cooperative launch
// before it.
func (ex *Executor) checkAge() {
	w := &ex.watch
	switch {
	case !ex.Collector.MayHang() || !ex.busy():
	case w.since.IsZero():
		w.since = time.Now()
	case time.Since(w.since) > w.limit:
		ex.Fail(ex.hang(w.limit))
		for _, all := range []*[]completion{&ex.onCopyStream, &ex.onStream} {
			waiting := slices.Clone(*all)
			*all = (*all)[:0]
			for _, c := range waiting {
				ex.runAll(c.then)
			}
		}
	}
}

// hang notes that a launch does not end, and returns the error that says so.
func (ex *Executor) hang(limit time.Duration) error {
	ex.watch.hung = true
	return fmt.Errorf("cuda: a cooperative launch has not ended after %v: end what else uses the GPU, or set "+
		"%s=1, which does without such launches", limit, SeparateLaunchesVariable)
}
