package cli

import (
	"errors"
	"fmt"
	"testing"

	"fspda/data"
	"fspda/data/fetch"
	"fspda/data/images"
	"fspda/data/images/packed"
	"fspda/dist/nats"
	"fspda/train"
)

// TestExitStatus: errors carry the exit status of the command that they end, also when wrapped or joined.
func TestExitStatus(t *testing.T) {
	bad := []error{&usageError{}, &train.ConfigError{}, &train.FolderError{}, &train.CheckpointError{}, &data.FormatError{},
		&images.FormatError{}, &images.PictureError{Err: errors.New("x")}, &packed.OptionError{}, &fetch.ChecksumError{}, &nats.HandshakeError{}}
	for _, err := range bad {
		if got := exitStatus(fmt.Errorf("wrapped: %w", err)); got != exitBadInput {
			t.Errorf("%T: exit status %d, want %d", err, got, exitBadInput)
		}
	}
	for want, err := range map[int]error{
		0: nil, exitFailed: errors.New("anything else"), exitDiverged: &train.DivergedError{}, exitStopped: errors.Join(errStopped, &train.FolderError{}),
		7: &exitError{agent: 1, status: 7},
	} {
		if got := exitStatus(err); got != want {
			t.Errorf("%T: exit status %d, want %d", err, got, want)
		}
	}
}
