package selftest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"fspda/cuda/kernels/kerneltest"
	"fspda/device"
)

// Target is a device to check, and what is known of it.
type Target struct {
	Device    device.Device
	Precision string            // of its networks: fp32, tf32, fp16 or bf16
	Kernels   kerneltest.Runner // nil: it has no kernels of its own
	// Train plays a short training on a device, and returns the mean of the models and the loss
	// that it ends with. Where it is nil none is played.
	Train func(ctx context.Context, dev device.Device) (mean []float32, loss float64, err error)
	// Again opens the device a second time, and Free is the bytes of its memory that nobody has.
	// Where they are nil memory is not watched.
	Again func() (dev device.Device, end func() error, err error)
	Free  func() (int, error)
	Small bool // networks and shapes for a device that is slow
}

// Check is one thing that is looked at. Run returns what it saw in a few words, or what is wrong;
// an ErrLeftOut says why nothing was looked at.
type Check struct {
	Name string
	Run  func(ctx context.Context) (saw string, err error)
}

// ErrLeftOut is a check that does not apply.
type ErrLeftOut struct{ Why string }

func (e *ErrLeftOut) Error() string { return e.Why }

// Checks lists all checks.
func (t Target) Checks() []Check {
	var all []Check
	for _, group := range [][]Check{t.contract(), t.short(), t.kernels(), t.masks(), t.convolutions(), t.networks(),
		t.algorithms(), t.trainings(), t.memory()} {
		all = append(all, group...)
	}
	return all
}

// Result is what came of a check.
type Result struct {
	Name    string  `json:"name"`
	Verdict string  `json:"verdict"` // ok, left out, FAILED
	Saw     string  `json:"saw,omitempty"`
	Seconds float64 `json:"seconds"`
}

// Report is what came of all.
type Report struct {
	Device    string   `json:"device"`
	Precision string   `json:"precision"`
	Results   []Result `json:"results"`
	Failed    int      `json:"failed"`
}

const (
	passed  = "ok"
	leftOut = "left out"
	failed  = "FAILED"
)

// Run makes the checks whose name has one of the parts that only lists by commas, all of them where
// it is empty, also after one that fails. Each result is told to then when it is there. The error
// is that of the context.
func (t Target) Run(ctx context.Context, only string, then func(Result)) (Report, error) {
	r := Report{Device: t.Device.Name(), Precision: t.Precision}
	for _, c := range t.Checks() {
		if !wanted(c.Name, only) {
			continue
		}
		begin := time.Now()
		saw, err := c.Run(ctx)
		if ctx.Err() != nil {
			return r, ctx.Err()
		}
		result := Result{c.Name, passed, saw, time.Since(begin).Seconds()}
		var out *ErrLeftOut
		switch {
		case errors.As(err, &out):
			result.Verdict, result.Saw = leftOut, out.Why
		case err != nil:
			result.Verdict, result.Saw = failed, err.Error()
			r.Failed++
		}
		r.Results = append(r.Results, result)
		then(result)
	}
	return r, nil
}

func wanted(name, only string) bool {
	for part := range strings.SplitSeq(only, ",") {
		if strings.Contains(name, strings.TrimSpace(part)) {
			return true
		}
	}
	return false
}

// String is a line for people. What is wrong begins on it and goes on below.
func (r Result) String() string {
	text := fmt.Sprintf("%-40s %-8s %6.1f s", r.Name, r.Verdict, r.Seconds)
	if r.Saw != "" {
		text += "  " + strings.ReplaceAll(r.Saw, "\n", "\n    ")
	}
	return text
}

// reporter collects what a check of another package reports. The rest of a testing.TB, which checks
// do not use, it has not.
type reporter struct {
	testing.TB
	errs []error
}

func (r *reporter) Helper() {}

func (r *reporter) Errorf(format string, args ...any) {
	r.errs = append(r.errs, fmt.Errorf(format, args...))
}

// mostErrors is how many lines of what is wrong with one thing are worth reading.
const mostErrors = 10

func (r *reporter) err() error {
	errs := r.errs
	if n := len(errs); n > mostErrors {
		errs = append(errs[:mostErrors:mostErrors], fmt.Errorf("and %d more", n-mostErrors))
	}
	return errors.Join(errs...)
}
