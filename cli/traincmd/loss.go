package traincmd

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"fspda/cuda"
)

// lossError is a training that ended because a GPU was lost.
type lossError struct {
	err    error
	folder string
	kept   bool // there is a checkpoint
}

// ofLoss is the error of a training in a folder, with what to do where a GPU was lost.
func ofLoss(err error, folder string) error {
	if !cuda.Lost(err) {
		return err
	}
	found, failed := filepath.Glob(filepath.Join(folder, "checkpoints", "iter-*"))
	return &lossError{onlyOnce(err), folder, failed == nil && len(found) > 0}
}

func (e *lossError) Unwrap() error { return e.err }

func (e *lossError) Error() string {
	if !e.kept {
		return fmt.Sprintf("%v: the GPU is lost before the first checkpoint: begin again, with another --out", e.err)
	}
	return fmt.Sprintf("%v: the GPU is lost: fspda train --out %s --resume goes on from the last checkpoint, with --device cpu or another GPU if this one stays away", e.err, e.folder)
}

// onlyOnce leaves out of joined errors those that say the same as another: all agents of a GPU meet
// its loss.
func onlyOnce(err error) error {
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
