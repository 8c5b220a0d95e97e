package command

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"

	"fspda/data"
	"fspda/data/fetch"
	"fspda/data/images"
	"fspda/data/images/packed"
	"fspda/dist/link"
	"fspda/train"
)

// TestExitStatus: errors carry the exit status of the command that they end, also when wrapped or
// joined.
func TestExitStatus(t *testing.T) {
	bad := []error{UsageErrorf("x"), &train.ConfigError{}, &train.FolderError{}, &train.CheckpointError{},
		&data.FormatError{}, &images.FormatError{}, &images.PictureError{Err: errors.New("x")}, &packed.OptionError{},
		&fetch.ChecksumError{}, &link.HandshakeError{}}
	for _, err := range bad {
		if got := ExitStatus(fmt.Errorf("wrapped: %w", err)); got != ExitBadInput {
			t.Errorf("%T: exit status %d, want %d", err, got, ExitBadInput)
		}
	}
	for want, err := range map[int]error{
		0: nil, ExitFailed: errors.New("anything else"), ExitDiverged: &train.DivergedError{},
		ExitStopped:  errors.Join(ErrStopped, &train.FolderError{}),
		ExitDiskFull: &train.FolderError{Err: &os.PathError{Op: "write", Path: "metrics.csv", Err: syscall.ENOSPC}},
	} {
		if got := ExitStatus(err); got != want {
			t.Errorf("%T: exit status %d, want %d", err, got, want)
		}
	}
}
