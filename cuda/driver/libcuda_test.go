package driver

import (
	"errors"
	"os"
	"testing"

	"fspda/cuda/dynlib"
)

// Every function that is used exists in a real libcuda, and without a GPU starting it ends in
// ErrNoDevice and the driver's version.
func TestLibcuda(t *testing.T) {
	if !dynlib.Supported {
		t.Skip("this build opens no libraries")
	}
	f := dynlib.System()
	if _, err := f.Open(dynlib.Driver()); err != nil {
		t.Skipf("%v (%s names a folder with one; Debian's package libcuda1 has it, and needs no GPU to be unpacked)",
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
		t.Fatalf("the driver is %+v, want its path and its version", l)
	}
	t.Logf("%s speaks CUDA %s", l.Path, VersionText(l.Version))
	if l.ForThread().LaunchKernel == nil {
		t.Error("no hot functions")
	}
}
