package cuda

import (
	"errors"
	"fmt"
	"strings"

	"fspda/cuda/driver"
	"fspda/cuda/dynlib"
)

// toolkit is the libraries of one version of CUDA, some of which may be missing.
type toolkit struct {
	major                    int
	nvrtc, cublas, lt, cudnn found
}

// found is a library, or the reason why it is missing.
type found struct {
	library *dynlib.Library
	handle  *dynlib.Handle
	err     error
}

func find(f *dynlib.Finder, l *dynlib.Library) found {
	h, err := f.Open(l)
	return found{l, h, err}
}

// findToolkit looks for the libraries of one version of CUDA, for GPUs of a compute capability.
func findToolkit(f *dynlib.Finder, major, cc int) toolkit {
	return toolkit{major, find(f, dynlib.NVRTC(major)), find(f, dynlib.CUBLAS(major)), find(f, dynlib.CUBLASLt(major)),
		find(f, dynlib.CUDNN(major, cc))}
}

// all returns the libraries in the order of reports.
func (t *toolkit) all() []found { return []found{t.nvrtc, t.cublas, t.lt, t.cudnn} }

// usable returns nil where networks without convolutions can run.
func (t *toolkit) usable() error { return errors.Join(t.nvrtc.err, t.cublas.err, t.lt.err) }

func (t *toolkit) missing() int {
	n := 0
	for _, l := range t.all() {
		if l.err != nil {
			n++
		}
	}
	return n
}

// bestToolkit looks for the version of CUDA with the fewest missing libraries, the newest of
// several. The error names the missing ones.
func bestToolkit(f *dynlib.Finder, version, cc int) (toolkit, error) {
	majors := dynlib.Majors(version, cc)
	if len(majors) == 0 {
		return toolkit{}, fmt.Errorf("cuda: a driver of CUDA %s is too old, want %s or newer: update the driver of "+
			"the GPU", driver.VersionText(version), driver.VersionText(driver.OldestDriver))
	}
	var best toolkit
	for i, major := range majors {
		t := findToolkit(f, major, cc)
		if i == 0 || t.missing() < best.missing() {
			best = t
		}
		if t.missing() == 0 {
			break
		}
	}
	if err := best.usable(); err != nil {
		return best, &MissingError{Major: best.major, Errs: best.errors()}
	}
	return best, nil
}

func (t *toolkit) errors() []error {
	var errs []error
	for _, l := range t.all() {
		if l.err != nil {
			errs = append(errs, l.err)
		}
	}
	return errs
}

// MissingError names the libraries that are missing for a GPU.
type MissingError struct {
	Major int // the major version of CUDA
	Errs  []error
}

func (e *MissingError) Error() string {
	var all []string
	for _, err := range e.Errs {
		all = append(all, err.Error())
	}
	return fmt.Sprintf("cuda: libraries of CUDA %d are missing: %s", e.Major, strings.Join(all, "; "))
}

func (e *MissingError) Unwrap() []error { return e.Errs }
