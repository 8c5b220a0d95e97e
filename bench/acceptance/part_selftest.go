package acceptance

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Limits of a self-test: in the headline, and after it.
const (
	shortSelftest = 55 * time.Second
	longSelftest  = 150 * time.Second
)

// selftest is fspda selftest in a precision. Its lines come one by one, so that the lines before
// its time is over count.
func (o *Options) selftest(precision string, limit time.Duration) Part {
	return Part{Name: "selftest/" + precision, Limit: o.limit(limit), Run: func(ctx context.Context, b *job) error {
		seen, err := b.selftest(ctx, precision, b.shapes().checks)
		switch {
		case seen.all == 0:
			return err
		case seen.failed > 0: // the self-test ran; its result is that checks failed
		case err != nil:
			b.out.Summary = "none of " + seen.String() + " failed until then"
			return err
		}
		b.setChecks(seen)
		b.out.Summary = fmt.Sprintf("%d of %s failed", seen.failed, seen)
		return nil
	}}
}

// checksLeft is in the message of fspda selftest where the device failed and checks are left.
const checksLeft = "checks are left, with --after "

// selftest runs fspda selftest. Where a check ends the work of the process on the GPU, that check
// is made again with blocking launches, whose error names the kernel, and another process makes the
// remaining checks.
func (b *job) selftest(ctx context.Context, precision, only string) (seen checks, err error) {
	args := []string{"selftest", "--device", b.Device, "--precision", precision}
	these := args
	if only != "" {
		these = with(args, "--only", only)
	}
	for run := these; ; run = with(these, "--after", seen.last) {
		var text []byte
		text, err = b.program(ctx, run...)
		before := seen.all
		seen.add(b.readChecks(string(text)))
		if err == nil || seen.all == before || !strings.Contains(err.Error(), checksLeft) {
			return seen, err
		}
		k := *b
		k.env = append(slices.Clone(b.env), blockingLaunches)
		why, failed := k.program(ctx, with(args, "--only", seen.last)...)
		if failed != nil && ctx.Err() == nil {
			b.out.note("with blocking launches: " + strings.Join(strings.Fields(string(why)), " "))
		}
	}
}

func (b *job) setChecks(seen checks) {
	b.out.set("checks", float64(seen.all))
	b.out.set("failed", float64(seen.failed))
}

// Environment variables of the program: see docs/gpus.md. The first is NVIDIA's.
const (
	blockingLaunches  = "CUDA_LAUNCH_BLOCKING=1"
	withoutMegakernel = "FSPDA_CUDA_LAUNCHES=1"
)

// megakernelPart is the name of the part that checks cooperative launches. All other parts run
// without them unless it passes.
const megakernelPart = "selftest/megakernel"

// megakernel checks cooperative launches, whose blocks wait for each other: if they hang, nothing
// else works either. It also compiles the kernels, and so tells whether the GPU can be used at all.
func (o *Options) megakernel() Part {
	return Part{Name: megakernelPart, Limit: o.limit(25 * time.Second), Alone: true, Run: checkMegakernel}
}

func checkMegakernel(ctx context.Context, b *job) error {
	text, err := b.program(ctx, "selftest", "--device", b.Device, "--only", "kernels/megakernel")
	seen := b.readChecks(string(text))
	// A time-out before the first line is no proof of a hang, since kernels are compiled first. But if
	// it was one, every later part would hang too.
	if seen.failed > 0 || err != nil &&
		(len(text) > 0 || ctx.Err() != nil || strings.Contains(err.Error(), withoutMegakernel)) {
		b.out.set("without", 1)
	}
	if seen.failed == 0 && err != nil {
		return err
	}
	b.setChecks(seen)
	b.out.Summary = fmt.Sprintf("%d of %s failed", seen.failed, seen)
	return nil
}

// checks counts the checks of a self-test.
type checks struct {
	all, failed, leftOut int
	last                 string // name of the last check
}

func (c *checks) add(more checks) {
	*c = checks{c.all + more.all, c.failed + more.failed, c.leftOut + more.leftOut, cmp.Or(more.last, c.last)}
}

func (c checks) String() string { return fmt.Sprintf("%d checks (%d do not apply)", c.all, c.leftOut) }

// checkLine is a line of fspda selftest: the name, the verdict, the seconds, and the finding.
var checkLine = regexp.MustCompile(`^(\S.*?) +(ok|left out|FAILED) +[0-9.]+ s(?:  (.*))?$`)

// readChecks counts the checks that were made, and notes those that failed.
func (b *job) readChecks(text string) (seen checks) {
	for line := range strings.Lines(text) {
		m := checkLine.FindStringSubmatch(strings.TrimRight(line, "\r\n"))
		if m == nil { // the head, or a further line of an error
			continue
		}
		seen.all, seen.last = seen.all+1, m[1]
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
