package command

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

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
