package fetch

import (
	"compress/gzip"
	"context"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"fspda/internal/bounded"
)

// File is a file of a data set. At least one of SHA256, MD5 and Git is set.
type File struct {
	Name   string // may have folders, with slashes
	Size   int64  // bytes
	SHA256 string // SHA-256 of the file
	// SHA-256 of the uncompressed content of a gzip file; a recompressed file is accepted. "" for
	// other files
	Content string
	MD5     string // MD5 of the file, if no better checksum is published
	Git     string // checksum of the file in git: SHA-1 of a header and the content
}

// ChecksumError reports a file with other content than expected.
type ChecksumError struct {
	Path      string
	Got, Want string // the checksum or size found, and the expected one
	Hint      string
}

func (e *ChecksumError) Error() string {
	return fmt.Sprintf("fetch: %s: %s, want %s: %s", e.Path, e.Got, e.Want, e.Hint)
}

// ExitCode returns 2, the exit status for bad input.
func (e *ChecksumError) ExitCode() int { return 2 }

// Progress is called during downloads and verification: done of total bytes of a file.
type Progress func(name string, done, total int64)

// verify reads a file and compares its checksum. It returns the error of [bounded.Open] if the file
// does not exist.
func (f File) verify(ctx context.Context, path string, progress Progress) error {
	in, err := bounded.Open(path)
	if err != nil {
		return err
	}
	defer in.Close() // read only: an error loses no data
	info, err := in.Stat()
	if err != nil {
		return err
	}
	if info.Size() != f.Size && f.Content == "" {
		return &ChecksumError{Path: path, Got: fmt.Sprintf("%d bytes", info.Size()), Want: fmt.Sprint(f.Size),
			Hint: "it is cut off, or another file; remove it and call again"}
	}
	sum, want := sha256.New(), f.SHA256
	switch {
	case want != "":
	case f.MD5 != "":
		sum, want = md5.New(), f.MD5
	default:
		sum, want = sha1.New(), f.Git
		fmt.Fprintf(sum, "blob %d\x00", info.Size())
	}
	w := &progressReader{ctx: ctx, r: in, report: func(n int64) { progress(f.Name, n, info.Size()) }}
	if _, err := io.Copy(sum, w); err != nil {
		return fmt.Errorf("fetch: reading %s: %w", path, err)
	}
	got := hex.EncodeToString(sum.Sum(nil))
	if got == want || f.sameContent(in) {
		return nil
	}
	return &ChecksumError{Path: path, Got: "checksum " + got, Want: want,
		Hint: "it is damaged, or another file; remove it and call again"}
}

// sameContent reports whether a recompressed gzip file holds the right content.
func (f File) sameContent(in io.ReadSeeker) bool {
	if f.Content == "" {
		return false
	}
	if _, err := in.Seek(0, io.SeekStart); err != nil {
		return false
	}
	z, err := gzip.NewReader(in)
	if err != nil {
		return false
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, io.LimitReader(z, 1<<30)); err != nil {
		return false
	}
	return hex.EncodeToString(sum.Sum(nil)) == f.Content
}

// progressReader is a reader that reports progress and ends with a context.
type progressReader struct {
	ctx    context.Context
	r      io.Reader
	done   int64
	report func(done int64)
}

func (w *progressReader) Read(b []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := w.r.Read(b)
	w.done += int64(n)
	w.report(w.done)
	return n, err
}

// Report is the state of a file of a set in a folder.
type Report struct {
	File File
	Path string
	Err  error // nil: intact; [os.ErrNotExist]: missing; a [ChecksumError]: another file
}

// Verify reads the files of a set in a folder and compares their checksums.
func (s Set) Verify(ctx context.Context, dir string, progress Progress) ([]Report, error) {
	var all []Report
	for _, f := range s.Files {
		r := Report{File: f, Path: filepath.Join(dir, f.Name)}
		r.Err = f.verify(ctx, r.Path, orNone(progress))
		if _, ok := errors.AsType[*ChecksumError](r.Err); r.Err != nil && !ok && !errors.Is(r.Err, os.ErrNotExist) {
			return nil, r.Err
		}
		all = append(all, r)
	}
	return all, nil
}

func orNone(p Progress) Progress {
	if p == nil {
		return func(string, int64, int64) {}
	}
	return p
}
