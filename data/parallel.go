package data

import (
	"cmp"
	"sync"
	"sync/atomic"
)

// parallel calls do for 0 to n-1 on a number of goroutines, starts no more calls after an error,
// and returns the first error by number, which does not depend on scheduling.
func parallel(workers, n int, do func(i int) error) error {
	errs := make([]error, n)
	var next atomic.Int64
	var failed atomic.Bool
	var team sync.WaitGroup
	for range min(workers, n) {
		team.Go(func() {
			for !failed.Load() {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if errs[i] = do(i); errs[i] != nil {
					failed.Store(true)
				}
			}
		})
	}
	team.Wait()
	return cmp.Or(errs...)
}
