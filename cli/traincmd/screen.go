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

// screen is the lower end of a terminal: some lines that change, and a bar below them. What is
// written to it goes above. All methods are safe for concurrent use.
type screen struct {
	mu    sync.Mutex
	w     io.Writer
	width func() int
	still bool // the terminal cannot move its cursor: no lines, the bar alone
	lines []string
	bar   *progressbar.ProgressBar
}

// newScreen makes a screen of a terminal.
func newScreen(file *os.File) *screen {
	width := func() int {
		w, _, err := term.GetSize(int(file.Fd()))
		if err != nil {
			return 80
		}
		return w
	}
	return &screen{w: file, width: width, still: os.Getenv("TERM") == "dumb" || runtime.GOOS == "windows"}
}

// Write puts text above the lines.
func (s *screen) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	n, err := s.w.Write(text)
	s.draw()
	return n, err
}

// set changes the lines and what stands before the bar.
func (s *screen) set(lines []string, before string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	if !s.still {
		s.lines = lines
	}
	s.draw()
	if s.bar != nil {
		s.bar.Describe(before)
	}
}

// move moves the bar. A terminal that is gone is no reason to stop training.
func (s *screen) move(t int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.bar.Set64(t)
}

// end takes the bar away and leaves the lines.
func (s *screen) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bar != nil {
		_ = s.bar.Clear()
	}
	s.bar, s.lines = nil, nil
}

// erase takes bar and lines away.
func (s *screen) erase() {
	if s.bar != nil {
		_ = s.bar.Clear()
	}
	if n := len(s.lines); n > 0 {
		fmt.Fprintf(s.w, "\r\x1b[%dA\x1b[J", n)
	}
}

// draw puts the lines back; the bar comes with its next move.
func (s *screen) draw() {
	for _, l := range s.lines {
		fmt.Fprintln(s.w, l)
	}
}
