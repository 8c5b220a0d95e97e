package web

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"strconv"
	"sync"
	"time"
)

// Limits of what is read of one run's metrics.
const (
	pollEvery   = 200 * time.Millisecond // how often a file is looked at, however many follow it
	readAtOnce  = 16 << 20               // bytes
	mostRows    = 200_000                // rows that are kept
	rowsAtOnce  = 2000                   // in one message
	thinAbove   = 6000                   // a history longer than this is sent with gaps
	keepReaders = 64                     // files that stay in memory
)

// follower reads the metrics.jsonl of a run as it grows. It reads when asked, so a file that nobody
// looks at costs nothing.
type follower struct {
	root *os.Root
	path string // of metrics.jsonl within root

	mu      sync.Mutex
	metrics *metrics
	life    int // grows when earlier rows were dropped: the file was replaced, or the run went back to a checkpoint
	offset  int64
	file    os.FileInfo
	looked  time.Time
	used    time.Time
	damaged int // lines that are no rows
}

// place is how far somebody has read.
type place struct{ life, row int }

// rows returns a message with the rows after at, and how far it reaches; nil if there is nothing
// new.
func (f *follower) rows(run string, at place, now time.Time) (message []byte, next place) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.used = now
	if now.Sub(f.looked) >= pollEvery {
		f.looked = now
		f.refresh()
	}
	fresh := at.life != f.life
	if fresh {
		at = place{f.life, 0}
	}
	if f.metrics == nil || at.row >= f.metrics.rows && !fresh {
		return nil, at
	}
	step := 1
	if left := f.metrics.rows - at.row; left > thinAbove {
		step = (left + thinAbove - 1) / thinAbove
	}
	to := min(f.metrics.rows, at.row+rowsAtOnce*step)
	return f.message(run, fresh, at.row, to, step), place{f.life, to}
}

// message writes rows as JSON.
func (f *follower) message(run string, fresh bool, from, to, step int) []byte {
	var b bytes.Buffer
	b.WriteString(`{"run":` + quoted(run))
	if fresh {
		b.WriteString(`,"fresh":true`)
	}
	b.WriteString(`,"damaged":` + strconv.Itoa(f.damaged) + `,"every":` + strconv.Itoa(step) + `,"columns":[`)
	for k, name := range metricKeys {
		if k > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`"` + name + `"`)
	}
	b.WriteString(`],"rows":[`)
	for r := from; r < to; r += step {
		if r > from {
			b.WriteByte(',')
		}
		b.WriteByte('[')
		for k, name := range metricKeys {
			if k > 0 {
				b.WriteByte(',')
			}
			writeNumber(&b, f.metrics.column[name][r])
		}
		b.WriteByte(']')
	}
	b.WriteString("]}")
	return b.Bytes()
}

// refresh reads what was added. A file that cannot be read now is read another time.
func (f *follower) refresh() {
	file, info, err := openRegular(f.root, f.path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) && f.metrics != nil {
			f.begin(nil)
		}
		return
	}
	defer file.Close()
	if f.metrics == nil || !os.SameFile(info, f.file) || info.Size() < f.offset {
		f.begin(info)
	}
	if info.Size() == f.offset {
		return
	}
	if _, err := file.Seek(f.offset, io.SeekStart); err == nil {
		f.read(file)
	}
}

// begin forgets all rows.
func (f *follower) begin(info os.FileInfo) {
	f.life++
	f.metrics, f.file, f.offset, f.damaged = &metrics{column: map[string][]float64{}}, info, 0, 0
}

// read takes in whole lines; what follows the last line end is still being written.
func (f *follower) read(r io.Reader) {
	lines := bufio.NewReader(io.LimitReader(r, readAtOnce))
	for f.metrics.rows < mostRows {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			if len(line) >= readAtOnce/2 { // no line is this long: pass over it
				f.offset += int64(len(line))
				f.damaged++
			}
			return
		}
		f.offset += int64(len(line))
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		before := f.metrics.rows
		if err := f.metrics.add(line); err != nil {
			f.damaged++
		} else if f.metrics.rows <= before {
			f.life++
		}
	}
}

// followers are the files that are followed, by run.
type followers struct {
	root *os.Root
	mu   sync.Mutex
	of   map[string]*follower
}

// get returns the follower of a run, and lets the one go that nobody asked for longest.
func (fs *followers) get(run string, now time.Time) *follower {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if f := fs.of[run]; f != nil {
		return f
	}
	if len(fs.of) >= keepReaders {
		oldest := ""
		for name, f := range fs.of {
			if oldest == "" || f.lastUsed().Before(fs.of[oldest].lastUsed()) {
				oldest = name
			}
		}
		delete(fs.of, oldest)
	}
	f := &follower{root: fs.root, path: within(run, "metrics.jsonl"), used: now}
	fs.of[run] = f
	return f
}

func (f *follower) lastUsed() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.used
}
