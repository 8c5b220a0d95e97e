package web

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"
)

// Limits on reading the metrics of one run.
const (
	pollInterval   = 200 * time.Millisecond // time between reads of a file, however many clients follow it
	maxReadBytes   = 16 << 20               // most bytes of one read
	maxRows        = 200_000                // that are kept
	maxMessageRows = 2000
	maxFullHistory = 6000 // rows; a longer history is sent thinned out
	maxTailers     = 64   // runs whose rows stay in memory
)

// tailer reads the metrics.jsonl of a run as it grows. It reads only when a client asks.
type tailer struct {
	root *runTree
	path string // path of metrics.jsonl within root

	mu      sync.Mutex
	metrics *metrics
	// counts how often earlier rows were dropped: the file was replaced, or the run resumed from a
	// checkpoint
	generation int
	offset     int64
	file       os.FileInfo
	lastPoll   time.Time
	used       time.Time
	damaged    int // lines that could not be parsed
}

// cursor is the position up to which a client has read: rows [0, row) of a generation.
type cursor struct{ generation, row int }

// rows returns a message with the rows after at, and the position that it reaches. The message is
// nil if there are no new rows.
func (f *tailer) rows(run string, at cursor, now time.Time) (message []byte, next cursor) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.used = now
	if now.Sub(f.lastPoll) >= pollInterval {
		f.lastPoll = now
		f.refresh()
	}
	fresh := at.generation != f.generation
	if fresh {
		at = cursor{f.generation, 0}
	}
	if f.metrics == nil || at.row >= f.metrics.rows && !fresh {
		return nil, at
	}
	step := 1
	if left := f.metrics.rows - at.row; left > maxFullHistory {
		step = (left + maxFullHistory - 1) / maxFullHistory
	}
	to := min(f.metrics.rows, at.row+maxMessageRows*step)
	return f.message(run, fresh, at.row, to, step), cursor{f.generation, to}
}

// message encodes rows as JSON.
func (f *tailer) message(run string, fresh bool, from, to, step int) []byte {
	var b bytes.Buffer
	head := map[string]any{"run": clean(run), "damaged": f.damaged, "every": step, "columns": metricKeys}
	if fresh {
		head["fresh"] = true
	}
	b.Write(encoded(head))
	b.Truncate(b.Len() - 1) // the closing brace: the rows follow
	b.WriteString(`,"rows":[`)
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

// refresh reads the appended lines. A file that cannot be read is tried again at the next poll.
func (f *tailer) refresh() {
	file, info, err := openRegular(f.root, f.path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) && f.metrics != nil {
			f.reset(nil)
		}
		return
	}
	defer file.Close()
	if f.metrics == nil || !os.SameFile(info, f.file) || info.Size() < f.offset {
		f.reset(info)
	}
	if info.Size() == f.offset {
		return
	}
	if _, err := file.Seek(f.offset, io.SeekStart); err == nil {
		f.read(file)
	}
}

// reset drops all rows and starts a new generation.
func (f *tailer) reset(info os.FileInfo) {
	f.generation++
	f.metrics, f.file, f.offset, f.damaged = &metrics{column: map[string][]float64{}}, info, 0, 0
}

// read parses whole lines. Bytes after the last newline belong to a line that is still being
// written.
func (f *tailer) read(r io.Reader) {
	lines := bufio.NewReader(io.LimitReader(r, maxReadBytes))
	for f.metrics.rows < maxRows {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			if len(line) >= maxReadBytes/2 { // no valid line is this long: skip it
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
			f.generation++
		}
	}
}

// tailers holds the tailers of at most maxTailers runs.
type tailers struct {
	root *runTree
	mu   sync.Mutex
	runs map[string]*tailer
}

// get returns the tailer of a run. Beyond maxTailers it drops the least recently used one, which it
// finds by a scan: 64 entries need no LRU list.
func (fs *tailers) get(run string, now time.Time) *tailer {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if f := fs.runs[run]; f != nil {
		return f
	}
	if len(fs.runs) >= maxTailers {
		oldest := ""
		for name, f := range fs.runs {
			if oldest == "" || f.lastUsed().Before(fs.runs[oldest].lastUsed()) {
				oldest = name
			}
		}
		delete(fs.runs, oldest)
	}
	f := &tailer{root: fs.root, path: runFile(run, "metrics.jsonl"), used: now}
	fs.runs[run] = f
	return f
}

func (f *tailer) lastUsed() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.used
}
