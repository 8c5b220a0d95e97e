package acceptance

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Limits of a self-test: in the headline, and after it.
const (
	shortSelftest = 75 * time.Second
	longSelftest  = 150 * time.Second
)

// selftest is fspda selftest in a precision. Its lines come one by one, so that those until its
// time is over count.
func (o *Options) selftest(precision string, limit time.Duration) Part {
	return Part{"selftest/" + precision, o.limit(limit), func(ctx context.Context, b *job) error {
		args := []string{"selftest", "--device", b.Device, "--precision", precision}
		if only := b.shapes().checks; only != "" {
			args = append(args, "--only", only)
		}
		text, err := b.program(ctx, args...)
		seen := b.readChecks(string(text))
		switch {
		case seen.all == 0:
			return err
		case seen.failed > 0: // that is what it found, and no failure to find it
		case err != nil:
			b.out.Summary = "none of " + seen.String() + " failed until then"
			return err
		}
		b.out.set("checks", float64(seen.all))
		b.out.set("failed", float64(seen.failed))
		b.out.Summary = fmt.Sprintf("%d of %s failed", seen.failed, seen)
		return nil
	}}
}

// fusedPart is the name of the part that checks fused kernels.
const fusedPart = "selftest/fused"

// withoutFused is the variable of the program that leaves out fused kernels: see docs/gpus.md.
const withoutFused = "FSPDA_CUDA_FUSED=0"

// fused compares fused kernels with the separate kernels that they replace, in the precisions that
// have a target. Unless all pass, all other parts run without fused kernels.
func (o *Options) fused() Part {
	return Part{fusedPart, o.limit(25 * time.Second), func(ctx context.Context, b *job) error {
		if b.Tiny {
			b.out.Summary = "left out: the check has no tiny shapes"
			return nil
		}
		b.out.set("without", 1) // until they have passed
		var sum checks
		var saw []string
		for _, precision := range judged {
			text, err := b.program(ctx, "selftest", "--device", b.Device, "--precision", precision, "--only", "fused/")
			seen := b.readChecks(string(text))
			if seen.failed == 0 && err != nil {
				return err
			}
			sum = checks{sum.all + seen.all, sum.failed + seen.failed, sum.leftOut + seen.leftOut}
			saw = append(saw, precision+": "+b.saw)
		}
		b.out.set("checks", float64(sum.all))
		b.out.set("failed", float64(sum.failed))
		if sum.failed == 0 {
			b.out.set("without", 0)
		}
		b.out.Summary = fmt.Sprintf("%d of %s failed; %s", sum.failed, sum, strings.Join(saw, "; "))
		return nil
	}}
}

// checks counts those of a self-test.
type checks struct{ all, failed, leftOut int }

func (c checks) String() string { return fmt.Sprintf("%d checks (%d do not apply)", c.all, c.leftOut) }

// checkLine is a line of fspda selftest: the name, the verdict, the seconds, and what it saw.
var checkLine = regexp.MustCompile(`^(\S.*?) +(ok|left out|FAILED) +[0-9.]+ s(?:  (.*))?$`)

// readChecks counts the checks that were made, and notes those that failed.
func (b *job) readChecks(text string) (seen checks) {
	for line := range strings.Lines(text) {
		m := checkLine.FindStringSubmatch(strings.TrimRight(line, "\r\n"))
		if m == nil { // the head, or more of what is wrong
			continue
		}
		seen.all++
		b.saw = m[3]
		switch m[2] {
		case "FAILED":
			seen.failed++
			b.out.note(m[1] + ": " + m[3])
		case "left out":
			seen.leftOut++
		}
	}
	return seen
}
