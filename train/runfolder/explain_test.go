package runfolder

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
)

// An error of writing advises to make room only if the disk is full.
func TestWriteHint(t *testing.T) {
	for cause, full := range map[error]bool{
		&os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}: true,
		os.ErrPermission:                    false,
		errors.New("a name is given twice"): false,
	} {
		err := (&Folder{}).metricsError(cause)
		if strings.Contains(err.Error(), "make room") != full || !strings.Contains(err.Error(), "--resume") {
			t.Errorf("%v", err)
		}
	}
}

// Advice about a limit of the system follows the first of several causes, which fspda up repeats.
func TestAdviceOfSeveralCauses(t *testing.T) {
	limit := &os.PathError{Op: "open", Path: "x", Err: syscall.EMFILE}
	err := (&Folder{Path: "run"}).metricsError(errors.Join(limit, errors.New("another")))
	first, rest, _ := strings.Cut(err.Error(), "\n")
	if !strings.HasSuffix(first, "(ulimit -n)") || rest != "another" {
		t.Errorf("%v", err)
	}
}
