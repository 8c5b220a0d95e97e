package traincmd

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"fspda/device"
)

// lostGPUError reports a training that ended because a GPU was lost.
type lostGPUError struct {
	err    error
	folder string
	saved  bool // there is a checkpoint
}

// explainLostGPU adds advice to the error of a training in a folder, if a GPU was lost.
func explainLostGPU(err error, folder string) error {
	if !device.Lost(err) {
		return err
	}
	found, failed := filepath.Glob(filepath.Join(folder, "checkpoints", "iter-*"))
	return &lostGPUError{withoutDuplicates(err), folder, failed == nil && len(found) > 0}
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
