package driver

import (
	"errors"
	"os"
	"testing"

	"fspda/cuda/dynlib"
)

// A real libcuda exports every function of API. Without a GPU, Open returns ErrNoDevice and the
// driver's version.
func TestLibcuda(t *testing.T) {
	if !dynlib.Supported {
		t.Skip("this build cannot open libraries")
	}
	f := dynlib.System()
	if _, err := f.Open(dynlib.Driver()); err != nil {
		t.Skipf("%v (set %s to a folder with libcuda; Debian's package libcuda1 has one and unpacks without a GPU)",
			err, dynlib.PathVariable)
	}
	l, err := Open(f)
	if _, module := os.Stat("/proc/driver/nvidia/version"); module == nil {
		if err != nil {
			t.Error(err)
		}
	} else if !errors.Is(err, ErrNoDevice) {
		t.Errorf("error %v, want %v", err, ErrNoDevice)
	}
	if l == nil || l.Version < OldestDriver || l.Path == "" {
		t.Fatalf("got %+v, want the path and version of the driver", l)
	}
	t.Logf("%s speaks CUDA %s", l.Path, VersionText(l.Version))
	if l.ForThread().LaunchKernel == nil {
		t.Error("ForThread returned no LaunchKernel")
	}
}
