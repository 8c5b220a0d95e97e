package traincmd

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// terminal shows lines that change, and a progress bar below them, at the lower end of a terminal.
// Text written to it appears above them. All methods are safe for concurrent use.
type terminal struct {
	mu    sync.Mutex
	w     io.Writer
	width func() int
	plain bool // the terminal cannot move its cursor: only the bar is shown
	lines []string
	bar   *progressbar.ProgressBar
}

func newTerminal(file *os.File) *terminal {
	width := func() int {
		w, _, err := term.GetSize(int(file.Fd()))
		if err != nil {
			return 80
		}
		return w
	}
	return &terminal{w: file, width: width, plain: os.Getenv("TERM") == "dumb" || runtime.GOOS == "windows"}
}

// Write prints text above the lines.
func (t *terminal) Write(text []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.erase()
	n, err := t.w.Write(text)
	t.draw()
	return n, err
}

func (t *terminal) set(lines []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.erase()
	if !t.plain {
		t.lines = lines
	}
	t.draw()
}

// move sets the progress of the bar and the text before it. Errors are ignored: training goes on
// without a terminal.
func (t *terminal) move(n int64, before string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bar.Describe(before)
	_ = t.bar.Set64(n)
}

// end removes the bar, and leaves the lines if asked to.
func (t *terminal) end(leave bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if leave && t.bar != nil {
		_ = t.bar.Clear()
	} else {
		t.erase()
	}
	t.bar, t.lines = nil, nil
}

// erase removes the bar and the lines.
func (t *terminal) erase() {
	if t.bar != nil {
		_ = t.bar.Clear()
	}
	if n := len(t.lines); n > 0 {
		fmt.Fprintf(t.w, "\r\x1b[%dA\x1b[J", n)
	}
}

// draw prints the lines again; the bar appears with its next move.
func (t *terminal) draw() {
	for _, l := range t.lines {
		fmt.Fprintln(t.w, l)
	}
}
