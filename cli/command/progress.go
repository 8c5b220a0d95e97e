package command

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"fspda/train"
)

// ProgressMeter follows the rows of a run. It estimates the number of examples, or tokens of text,
// that its agents train on in a second, and the time that is left. The time of an iteration is
// measured between two rows, evaluations included, and smoothed over rows.
type ProgressMeter struct {
	setup *train.Setup
	each  float64 // seconds of an iteration; 0: not known
	rate  float64 // examples or tokens a second since the previous row; 0: not known
	last  train.Row
	rows  int
}

// NewProgressMeter returns the meter of a run that begins, or is resumed.
func NewProgressMeter(s *train.Setup) *ProgressMeter { return &ProgressMeter{setup: s} }

// newestShare is the weight of the latest row in the smoothed time of an iteration.
const newestShare = 0.3

// Expect sets the estimate before the first rows: the number of iterations that are left, and the
// time that they take.
func (p *ProgressMeter) Expect(left int, took time.Duration) {
	if left > 0 {
		p.each = took.Seconds() / float64(left)
	}
}

func (p *ProgressMeter) Row(r train.Row) {
	was := p.last
	p.last = r
	p.rows++
	iterations, took := r.Iteration-was.Iteration, float64(r.WallS-was.WallS)
	if p.rows < 2 || !(took > 0) || iterations <= 0 {
		return
	}
	each := took / float64(iterations)
	p.each = cmp.Or(p.each, each)
	p.each += newestShare * (each - p.each)
	p.rate = 0
	if seen := float64(r.Epoch-was.Epoch) * float64(p.setup.Set.Train.Len()*max(1, p.setup.Window)); seen > 0 {
		p.rate = seen / took
	}
}

// Left estimates the seconds from an iteration to the end, rounded; 0: not known, or less than one.
func (p *ProgressMeter) Left(iteration int) float64 {
	return math.Round(math.Max(0, float64(p.setup.Config.Iterations-iteration)*p.each))
}

// Rate returns the number of examples, or tokens of text, that the agents processed per second
// between the latest two rows; 0 if it is not known.
func (p *ProgressMeter) Rate() float64 { return p.rate }

// Unit is the unit that Rate counts: images or tokens.
func (p *ProgressMeter) Unit() string {
	if p.setup.Window > 0 {
		return "tokens"
	}
	return "images"
}

// String writes the rate, such as 12,345 images/s; empty where it is not known.
func (p *ProgressMeter) String() string {
	if p.rate <= 0 {
		return ""
	}
	return fmt.Sprintf("%s %s/s", Thousands(uint64(p.rate)), p.Unit())
}

// Progress shows the progress of a long task: a bar on a terminal, otherwise a line every ten
// seconds.
type Progress struct {
	w     io.Writer
	what  string
	bar   *progressbar.ProgressBar // nil without a terminal
	total int64
	last  time.Time // time of the last line
}

// NewProgress starts at 0 of total, in bytes or in images.
func NewProgress(w io.Writer, what string, total int64, inBytes bool) *Progress {
	p := &Progress{w: w, what: what, total: max(total, 1), last: time.Now()}
	if file, ok := w.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		unit := progressbar.OptionSetItsString("pictures")
		if inBytes {
			unit = progressbar.OptionShowBytes(true)
		}
		p.bar = progressbar.NewOptions64(p.total, progressbar.OptionSetWriter(w),
			progressbar.OptionSetDescription(what), unit,
			progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionSetPredictTime(true),
			progressbar.OptionSetElapsedTime(true), progressbar.OptionFullWidth(), progressbar.OptionClearOnFinish(),
			progressbar.OptionThrottle(100*time.Millisecond))
	}
	return p
}

// Set sets the progress. note is appended to the name of the task.
func (p *Progress) Set(done int64, note string) {
	if p.bar != nil {
		p.bar.Describe(p.what + note)
		_ = p.bar.Set64(done) // the task goes on without a terminal
		return
	}
	if time.Since(p.last) > 10*time.Second {
		p.last = time.Now()
		fmt.Fprintf(p.w, "%s %d%%%s\n", p.what, 100*done/p.total, note)
	}
}

func (p *Progress) Close() {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}
