package command

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// Progress shows how far a long piece of work is: as a bar on a terminal, as a line now and then
// elsewhere.
type Progress struct {
	w     io.Writer
	what  string
	bar   *progressbar.ProgressBar // nil where there is no terminal
	total int64
	told  time.Time // when a line was written
}

func NewProgress(w io.Writer, what string, total int64, inBytes bool) *Progress {
	g := &Progress{w: w, what: what, total: max(total, 1), told: time.Now()}
	if file, ok := w.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		unit := progressbar.OptionSetItsString("pictures")
		if inBytes {
			unit = progressbar.OptionShowBytes(true)
		}
		g.bar = progressbar.NewOptions64(g.total, progressbar.OptionSetWriter(w),
			progressbar.OptionSetDescription(what), unit,
			progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionSetPredictTime(true),
			progressbar.OptionSetElapsedTime(true), progressbar.OptionFullWidth(), progressbar.OptionClearOnFinish(),
			progressbar.OptionThrottle(100*time.Millisecond))
	}
	return g
}

// set moves the gauge. note is added to what is going on.
func (g *Progress) Set(done int64, note string) {
	if g.bar != nil {
		g.bar.Describe(g.what + note)
		_ = g.bar.Set64(done) // a terminal that is gone is no reason to stop
		return
	}
	if time.Since(g.told) > 10*time.Second {
		g.told = time.Now()
		fmt.Fprintf(g.w, "%s %d%%%s\n", g.what, 100*done/g.total, note)
	}
}

func (g *Progress) Close() {
	if g.bar != nil {
		_ = g.bar.Clear()
	}
}
