package tensorboard

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"unicode/utf8"
)

// Writer writes one event file. Its methods do not allocate once its buffers have grown.
type Writer struct {
	path    string
	file    *os.File
	out     *bufio.Writer
	started bool // the version event is written
	event   []byte
	record  []byte
	err     error // the first error, which is permanent
}

// Create makes the folder dir if necessary, and in it a new event file with the next number:
// events.out.tfevents.000000.fspda and so on. It never changes an existing file.
func Create(dir string) (*Writer, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("tensorboard: create folder for events: %w", err)
	}
	n, err := nextNumber(dir)
	if err != nil {
		return nil, fmt.Errorf("tensorboard: look for earlier events: %w", err)
	}
	for ; ; n++ {
		path := filepath.Join(dir, fileName(n))
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if errors.Is(err, fs.ErrExist) {
			continue // another process created it first
		}
		if err != nil {
			return nil, fmt.Errorf("tensorboard: create event file: %w", err)
		}
		return &Writer{path: path, file: f, out: bufio.NewWriter(f)}, nil
	}
}

// fileName is the name of the n-th event file. Six digits keep names sorted for a million starts.
func fileName(n int) string { return fmt.Sprintf("events.out.tfevents.%06d.fspda", n) }

// nextNumber returns one more than the largest number of an event file in dir.
func nextNumber(dir string) (int, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	next := 0
	for _, e := range entries {
		n := 0
		if _, err := fmt.Sscanf(e.Name(), "events.out.tfevents.%d.fspda", &n); err == nil && e.Name() == fileName(n) {
			next = max(next, n+1)
		}
	}
	return next, nil
}

// Path returns the path of the event file.
func (w *Writer) Path() string { return w.path }

// Scalar adds a point to the curve named tag: value at iteration step, measured at wall seconds
// since 1970. The tag must be valid UTF-8 and not empty; a slash in it groups curves. Non-finite
// values are written, and shown as gaps; finite ones beyond the range of float32 become its largest
// number. After the first error the Writer writes nothing more and
// keeps returning that error.
func (w *Writer) Scalar(tag string, step int64, wall, value float64) error {
	if tag == "" || !utf8.ValidString(tag) {
		return fmt.Errorf("tensorboard: scalar tag %q at step %d: want non-empty UTF-8", tag, step)
	}
	w.start(wall)
	if !math.IsInf(value, 0) {
		value = max(-math.MaxFloat32, min(value, math.MaxFloat32)) // a NaN stays
	}
	w.event = appendScalar(w.event[:0], wall, step, tag, float32(value))
	return w.put()
}

// Hyperparameters writes the settings of the run, for the tab hparams: values that are float64, bool
// or string.
func (w *Writer) Hyperparameters(params map[string]any, wall float64) error {
	w.start(wall)
	w.event = hyperparameters(wall, params)
	return w.put()
}

// Restart makes readers drop all points of iteration step and later in earlier event files of this
// folder. Call it first when a run resumes from a checkpoint at step.
func (w *Writer) Restart(step int64, wall float64) error {
	w.start(wall)
	w.event = appendRestart(w.event[:0], wall, step)
	return w.put()
}

// start writes the version event together with the first other event, whose wall time it uses:
// readers count relative time from it.
func (w *Writer) start(wall float64) {
	if w.started {
		return
	}
	w.started = true
	w.event = appendVersion(w.event[:0], wall)
	w.put() // an error sticks
}

// put writes w.event as a record.
func (w *Writer) put() error {
	if w.err != nil {
		return w.err
	}
	w.record = appendRecord(w.record[:0], w.event)
	if _, err := w.out.Write(w.record); err != nil {
		w.fail("write", err)
	}
	return w.err
}

// fail keeps the first error.
func (w *Writer) fail(verb string, err error) {
	if w.err == nil {
		w.err = fmt.Errorf("tensorboard: %s %s: %w", verb, w.path, err)
	}
}

// Flush writes all buffered data to the operating system, where readers see it.
func (w *Writer) Flush() error {
	if w.err == nil {
		if err := w.out.Flush(); err != nil {
			w.fail("write", err)
		}
	}
	return w.err
}

// Close flushes and closes the file. A file without events still gets its version, and is valid. A
// second Close is an error.
func (w *Writer) Close() error {
	if w.file == nil {
		return fmt.Errorf("tensorboard: close %s: already closed", w.path)
	}
	w.start(0)
	w.Flush() // an error sticks
	if err := w.file.Close(); err != nil {
		w.fail("close", err)
	}
	w.file = nil
	err := w.err
	w.fail("write to", fs.ErrClosed)
	return err
}
