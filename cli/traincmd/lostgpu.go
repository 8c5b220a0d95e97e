package traincmd

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"fspda/device"
	"fspda/model/external"
)

// lostGPUError reports a training that ended because a GPU was lost.
type lostGPUError struct {
	err    error
	folder string
	saved  bool // there is a checkpoint
}

// explainLoss adds advice to the error of a training in a folder, if a GPU was lost, or the program
// of an external model failed.
func explainLoss(err error, folder string) error {
	_, failed := errors.AsType[*external.Error](err)
	if !failed && !device.Lost(err) {
		return err
	}
	found, globErr := filepath.Glob(filepath.Join(folder, "checkpoints", "iter-*"))
	saved := globErr == nil && len(found) > 0
	if !failed {
		return &lostGPUError{withoutDuplicates(err), folder, saved}
	}
	if !saved {
		return fmt.Errorf("%w\nthere was no checkpoint yet: correct the program, and start again with another --out, "+
			"or with --resume from iteration 0", err)
	}
	return fmt.Errorf("%w\nfspda train --out %s --resume goes on from the last checkpoint; --command names another "+
		"program of the same model", err, folder)
}

func (e *lostGPUError) Unwrap() error { return e.err }

func (e *lostGPUError) Error() string {
	if !e.saved {
		return fmt.Sprintf("%v: the GPU is lost before the first checkpoint: start again, with another --out", e.err)
	}
	return fmt.Sprintf("%v: the GPU is lost: fspda train --out %s --resume resumes from the last checkpoint; add "+
		"--device cpu or name another GPU if this one does not come back", e.err, e.folder)
}

// withoutDuplicates drops joined errors with equal texts: all agents of a GPU report its loss.
func withoutDuplicates(err error) error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return err
	}
	var all []error
	for _, e := range joined.Unwrap() {
		if !slices.ContainsFunc(all, func(have error) bool { return have.Error() == e.Error() }) {
			all = append(all, e)
		}
	}
	return errors.Join(all...)
}
