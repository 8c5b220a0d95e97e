package packed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/gofrs/flock"

	"fspda/data/images"
)

// Options configures the packing of a set.
type Options struct {
	Settings
	// stop at a bad image; otherwise bad images are left out and recorded
	Fail       bool
	Jobs       int   // workers; 0 means one per core
	MaxPixels  int   // larger images are bad; 0 means 100 million
	ShardBytes int64 // size of content at which a shard ends; 0 means 256 MiB
	// called with the numbers of images so far, of both splits and of earlier runs too;
	// may be nil
	Progress func(done, bad int)
}

// filled returns o with defaults for zero fields, or an error for invalid ones.
func (o Options) filled() (Options, error) {
	o.Size = cmp.Or(o.Size, 256)
	o.Format = cmp.Or(o.Format, Raw)
	if o.Format == JPEG && o.Quality == 0 {
		o.Quality = 90
	}
	o.Jobs = cmp.Or(o.Jobs, runtime.GOMAXPROCS(0))
	o.ShardBytes = cmp.Or(o.ShardBytes, 256<<20)
	if o.Progress == nil {
		o.Progress = func(int, int) {}
	}
	switch {
	case o.Size < 1 || o.Size > 1<<14:
		return o, &OptionError{fmt.Sprintf("size %d, want 1 to %d pixels", o.Size, 1<<14)}
	case o.Format != Raw && o.Format != JPEG:
		return o, &OptionError{fmt.Sprintf("format %q, want raw or jpeg", o.Format)}
	case o.Format == Raw && o.Quality != 0:
		return o, &OptionError{"a quality for format raw, which has none"}
	case o.Format == JPEG && (o.Quality < 1 || o.Quality > 100):
		return o, &OptionError{fmt.Sprintf("quality %d, want 1 to 100", o.Quality)}
	case o.Jobs < 1:
		return o, &OptionError{fmt.Sprintf("%d jobs, want at least 1", o.Jobs)}
	case o.ShardBytes < 1 || o.ShardBytes > 1<<40:
		return o, &OptionError{fmt.Sprintf("shards of %d bytes", o.ShardBytes)}
	}
	return o, nil
}

// OptionError reports an invalid option.
type OptionError struct{ msg string }

func (e *OptionError) Error() string { return "packed: " + e.msg }

// ExitCode returns 2, the exit status for bad input.
func (e *OptionError) ExitCode() int { return 2 }

// Prepare packs the images of a set into the folder dir, which it creates if necessary, and returns
// the manifest. It continues an interrupted preparation, also if images were changed since: shards
// of the images before the first change are kept. It does nothing if dir is complete. It returns an
// error if the folder holds other files, shards of other settings or a complete set of other
// images, or if another preparation is running in it. When ctx ends, Prepare returns its error and
// keeps the finished shards.
//
// An image whose short side is longer than Settings.Size is scaled down to it, by the Lanczos
// filter with three lobes; smaller ones are unchanged. An I/O error always ends the preparation:
// only content can be bad.
func Prepare(ctx context.Context, from *images.Set, dir string, o Options) (*Manifest, error) {
	o, err := o.filled()
	if err != nil {
		return nil, err
	}
	if err := makeFolder(dir); err != nil {
		return nil, err
	}
	lock := flock.New(filepath.Join(dir, lockName))
	if ok, err := lock.TryLock(); err != nil {
		return nil, writing(lock.Path(), err)
	} else if !ok {
		return nil, fmt.Errorf("packed: %s: another preparation is running in this folder: wait for it, or choose "+
			"another folder", dir)
	}
	defer lock.Close() // the lock ends with the process at the latest
	p := plan{Version: Version, Settings: o.Settings, Source: Origin{Path: from.Path, Kind: from.Kind,
		Fingerprint: fingerprint(from)}, ShardBytes: o.ShardBytes}
	if m, err := finished(dir, p); m != nil || err != nil {
		return m, err
	}
	j, err := openJournal(dir, p, from)
	if err != nil {
		return nil, err
	}
	w := &work{dir: dir, journal: j, options: o, set: from}
	err = w.all(ctx)
	if e := j.close(); err == nil { // each entry was synced; Windows removes no file that is open
		err = e
	}
	if err != nil {
		return nil, err
	}
	return w.conclude(p)
}

// makeFolder creates dir, or checks that it contains only our files.
func makeFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return writing(dir, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("packed: %w", err)
	}
	for _, e := range entries {
		switch e.Name() {
		case manifestName, journalName:
			return nil
		}
	}
	for _, e := range entries {
		if n := e.Name(); n != lockName && n != journalName+suffix {
			return &images.FormatError{Path: dir, Got: "a folder with other things in it, such as " + n,
				Want: "an empty one, or a packed set to go on with", Hint: "choose another folder"}
		}
	}
	return nil
}

// finished returns the manifest of a complete set.
func finished(dir string, p plan) (*Manifest, error) {
	m, err := ReadManifest(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	old := plan{Version: m.Version, Settings: m.Settings, Source: m.Source, ShardBytes: p.ShardBytes}
	if err := p.compare(old, filepath.Join(dir, manifestName)); err != nil {
		return nil, err
	}
	for _, part := range []Part{m.Train, m.Test} {
		for _, s := range part.Shards {
			if !s.exists(dir) {
				return nil, &images.FormatError{Path: filepath.Join(dir, s.File),
					Got: "a missing file, or one of another size", Want: fmt.Sprintf("%d bytes", s.Bytes),
					Hint: "delete the folder and prepare the set again"}
			}
		}
	}
	return m, removeJournal(dir)
}

// removeJournal ends the work: the manifest replaces the journal.
func removeJournal(dir string) error {
	if err := os.Remove(filepath.Join(dir, journalName)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return writing(filepath.Join(dir, journalName), err)
	}
	return nil
}

// isDisk reports whether an error is an I/O error instead of bad content.
func isDisk(err error) bool {
	var errno syscall.Errno
	return errors.As(err, &errno)
}

// conclude writes the files next to the shards, and finally the manifest.
func (w *work) conclude(p plan) (*Manifest, error) {
	m := &Manifest{Kind: kind, Version: Version, Settings: p.Settings, Source: p.Source, Classes: w.set.Classes}
	var bad []Bad
	for _, s := range w.splits() {
		part := s.part(w.journal.entries, len(m.Classes))
		if s.name == "train" {
			m.Train = part
		} else {
			m.Test = part
		}
		for _, e := range w.journal.entries {
			if e.Split == s.name {
				bad = append(bad, e.Bad...)
			}
		}
	}
	if m.Train.Pictures+m.Test.Pictures == 0 {
		return nil, fmt.Errorf("packed: %s: none of %d pictures could be used; the first: %s: %s", w.set.Path, len(bad),
			bad[0].Name, bad[0].Reason)
	}
	if err := writeBytes(filepath.Join(w.dir, classesName), []byte(strings.Join(m.Classes, "\n")+"\n")); err != nil {
		return nil, err
	}
	if err := writeBad(filepath.Join(w.dir, badName), bad); err != nil {
		return nil, err
	}
	text, err := m.encode()
	if err != nil {
		return nil, err
	}
	if err := writeBytes(filepath.Join(w.dir, manifestName), text); err != nil {
		return nil, err
	}
	return m, removeJournal(w.dir)
}
