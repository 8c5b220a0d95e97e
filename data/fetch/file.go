package fetch

import (
	"compress/gzip"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
)

// File is a file of a data set. At least one of SHA256 and MD5 is known.
type File struct {
	Name   string
	Size   int64  // bytes
	SHA256 string // of the file
	// SHA-256 of what is in the gzip; a file that was packed anew is as good; "" where there is
	// none
	Content string
	MD5     string // of the file, where no better sum is published
}

// ChecksumError says that a file is not the one it is called.
type ChecksumError struct {
	Path      string
	Got, Want string // what was found, what it should be
	Hint      string
}

func (e *ChecksumError) Error() string {
	return fmt.Sprintf("fetch: %s: %s, want %s: %s", e.Path, e.Got, e.Want, e.Hint)
}

// ExitCode returns 2, the exit status for bad input.
func (e *ChecksumError) ExitCode() int { return 2 }

// Progress hears of bytes that were downloaded or verified: done of total of a file.
type Progress func(name string, done, total int64)

// verify reads a file and compares its checksum. It returns the error of [os.Open] where there is
// no file.
func (f File) verify(ctx context.Context, path string, progress Progress) error {
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close() // read only: nothing to lose
	info, err := in.Stat()
	if err != nil {
		return err
	}
	if info.Size() != f.Size && f.Content == "" {
		return &ChecksumError{Path: path, Got: fmt.Sprintf("%d bytes", info.Size()), Want: fmt.Sprint(f.Size),
			Hint: "it is cut off, or another file; remove it and call again"}
	}
	sum, want := hash.Hash(sha256.New()), f.SHA256
	if want == "" {
		sum, want = md5.New(), f.MD5
	}
	w := &watched{ctx: ctx, r: in, report: func(n int64) { progress(f.Name, n, info.Size()) }}
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

// sameContent tells whether a gzip that was packed anew holds the right content.
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

// watched is a reader that reports how far it is, and ends when a context does.
type watched struct {
	ctx    context.Context
	r      io.Reader
	done   int64
	report func(done int64)
}

func (w *watched) Read(b []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := w.r.Read(b)
	w.done += int64(n)
	w.report(w.done)
	return n, err
}

// Report says what stands of a set in a folder.
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
		var sum *ChecksumError
		if r.Err != nil && !errors.As(r.Err, &sum) && !errors.Is(r.Err, os.ErrNotExist) {
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
