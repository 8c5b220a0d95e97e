package selftest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"fspda/cuda/kernels/kerneltest"
	"fspda/device"
)

// Target is a device to check, with access to it.
type Target struct {
	Device    device.Device
	Precision string            // precision of networks: fp32, tf32, fp16 or bf16
	Kernels   kerneltest.Runner // nil if it has no kernels of its own
	// Train runs a short training on a device, and returns the mean of the models and the final
	// loss. If nil, that check is skipped.
	Train func(ctx context.Context, dev device.Device) (mean []float32, loss float64, err error)
	// Again opens the device a second time, and Free returns the free bytes of its memory. If nil,
	// the checks of memory are skipped.
	Again func() (dev device.Device, end func() error, err error)
	Free  func() (int, error)
	// Err returns the failure after which the device does nothing any more, or nil. A device that
	// cannot fail so needs no Err.
	Err   func() error
	Small bool // use small networks and shapes, for a slow device
}

// Selection selects checks.
type Selection struct {
	Only  string // parts of names, separated by commas; empty: all
	After string // leaves out the check of this name and all before it, all if there is none; empty: none
}

// Check is one check. Run returns a short description of its measurement, or an error; a SkipError
// says why nothing was checked.
type Check struct {
	Name string
	Run  func(ctx context.Context) (saw string, err error)
}

// SkipError says why a check does not apply.
type SkipError string

func (e SkipError) Error() string { return string(e) }

func (t Target) Checks() []Check {
	return slices.Concat(t.contract(), t.halfPrecision(), t.kernels(), t.masks(), t.convolutions(),
		t.networks(), t.algorithms(), t.trainings(), t.memory())
}

// Result is the result of a check.
type Result struct {
	Name    string  `json:"name"`
	Verdict string  `json:"verdict"` // ok, left out, FAILED
	Saw     string  `json:"saw,omitempty"`
	Seconds float64 `json:"seconds"`
}

// Report is the result of all checks.
type Report struct {
	Device    string   `json:"device"`
	Precision string   `json:"precision"`
	Results   []Result `json:"results"`
	Failed    int      `json:"failed"`
	Left      int      `json:"left,omitempty"` // checks that were not made, as the device failed
}

const (
	passed  = "ok"
	skipped = "left out"
	failed  = "FAILED"
)

// Run runs the selected checks, and continues after a failure, unless the device itself failed. It
// passes each result to then. The error is the context's.
func (t Target) Run(ctx context.Context, which Selection, then func(Result)) (Report, error) {
	r := Report{Device: t.Device.Name(), Precision: t.Precision}
	checks := t.selected(which)
	for i, c := range checks {
		begin := time.Now()
		saw, err := c.Run(ctx)
		if ctx.Err() != nil {
			return r, ctx.Err()
		}
		gone := t.Err != nil && t.Err() != nil
		if gone && !errors.Is(err, t.Err()) { // first: operations on vectors only give NaN
			err = errors.Join(t.Err(), err)
		}
		result := Result{c.Name, passed, saw, time.Since(begin).Seconds()}
		if skip, ok := errors.AsType[SkipError](err); ok {
			result.Verdict, result.Saw = skipped, string(skip)
		} else if err != nil {
			result.Verdict, result.Saw = failed, err.Error()
			r.Failed++
		}
		r.Results = append(r.Results, result)
		then(result)
		if gone {
			r.Left = len(checks) - i - 1
			break
		}
	}
	return r, nil
}

func (t Target) selected(s Selection) []Check {
	all := t.Checks()
	if s.After != "" {
		i := slices.IndexFunc(all, func(c Check) bool { return c.Name == s.After })
		if i < 0 {
			return nil
		}
		all = all[i+1:]
	}
	return slices.DeleteFunc(all, func(c Check) bool { return !wanted(c.Name, s.Only) })
}

func wanted(name, only string) bool {
	for part := range strings.SplitSeq(only, ",") {
		if strings.Contains(name, strings.TrimSpace(part)) {
			return true
		}
	}
	return false
}

// String formats the result. An error begins on the first line and continues below.
func (r Result) String() string {
	text := fmt.Sprintf("%-40s %-8s %6.1f s", r.Name, r.Verdict, r.Seconds)
	if r.Saw != "" {
		text += "  " + strings.ReplaceAll(r.Saw, "\n", "\n    ")
	}
	return text
}

// reporter collects the failures reported by a check of another package. It does not implement the
// rest of testing.TB, which checks do not use.
type reporter struct {
	testing.TB
	errs []error
}

func (r *reporter) Helper() {}

func (r *reporter) Errorf(format string, args ...any) {
	r.errs = append(r.errs, fmt.Errorf(format, args...))
}

func (r *reporter) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

// maxErrors is the number of errors of one check that are reported.
const maxErrors = 10

// report runs a check of another package and returns its failures. The check has a goroutine of its
// own, which Fatalf ends.
func report(check func(testing.TB)) error {
	r := &reporter{}
	var wg sync.WaitGroup
	wg.Go(func() { check(r) })
	wg.Wait()
	errs := r.errs
	if n := len(errs); n > maxErrors {
		errs = append(errs[:maxErrors:maxErrors], fmt.Errorf("and %d more", n-maxErrors))
	}
	return errors.Join(errs...)
}
