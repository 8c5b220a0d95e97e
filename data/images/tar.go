package images

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
)

// member is a regular file in a tar, or a folder.
type member struct {
	name   string // cleaned, without a leading slash
	offset int64  // position of its content, relative to the outermost file
	size   int64
	dir    bool
	link   string // member that a link leads to
}

// scanTar calls visit for the members of a tar that occupies size bytes from base on. It reads only
// headers. where names the tar in errors.
func scanTar(where string, from io.ReaderAt, base, size int64, visit func(member) error) error {
	section := io.NewSectionReader(from, base, size)
	r := tar.NewReader(section)
	for n := 0; ; n++ {
		h, err := r.Next()
		if err == io.EOF {
			return nil
		}
		at, _ := section.Seek(0, io.SeekCurrent) // the reader has the position of the section
		if err != nil {
			return tarError(where, n, at, err)
		}
		m := member{name: strings.TrimLeft(path.Clean(h.Name), "/"), offset: base + at, size: h.Size,
			dir: h.Typeflag == tar.TypeDir}
		switch {
		case m.dir:
		case h.Typeflag == tar.TypeXGlobalHeader:
			continue
		case h.Typeflag == tar.TypeLink:
			m.link = strings.TrimLeft(path.Clean(h.Linkname), "/")
		case h.Typeflag == tar.TypeSymlink:
			m.link = linked(m.name, h.Linkname)
		case h.Typeflag != tar.TypeReg || isSparse(h):
			m.link = noLink // devices and sparse files have no contiguous content
		case h.Size > size-at:
			return tarError(where, n, at, io.ErrUnexpectedEOF)
		}
		if err := visit(m); err != nil {
			return err
		}
	}
}

// isSparse reports whether a file's bytes are not contiguous.
func isSparse(h *tar.Header) bool {
	for key := range h.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return true
		}
	}
	return h.Typeflag == tar.TypeGNUSparse
}

func tarError(where string, members int, at int64, err error) error {
	e := &FormatError{Path: where, Got: fmt.Sprintf("damage at byte %d, after %d files", at, members), Want: "a tar",
		Err: err, Hint: err.Error()}
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF) && at >= 512: // a tar block
		e.Got, e.Hint = fmt.Sprintf("the end at byte %d, after %d files", at,
			members), "the file is cut off; fetch it again"
	case members == 0:
		e.Got = "content that is not a tar"
		e.Hint = "it may be compressed or another kind of file; the name of a text ends in .txt"
	case !errors.Is(err, tar.ErrHeader):
		return fmt.Errorf("images: reading %s: %w", where, err)
	}
	return e
}

// compressed names the compression of a file by its first bytes.
func compressed(head string) string {
	for magic, name := range map[string]string{"\x1f\x8b": "gzip", "BZh": "bzip2", "\xfd7zXZ": "xz",
		"\x28\xb5\x2f\xfd": "zstd"} {
		if strings.HasPrefix(head, magic) {
			return name
		}
	}
	return ""
}

// checkTar detects files that are not uncompressed tars.
func checkTar(name string, f *os.File) error {
	head := make([]byte, 8)
	n, err := f.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return fmt.Errorf("images: %w", err)
	}
	if c := compressed(string(head[:n])); c != "" {
		return &FormatError{Path: name, Got: "a file compressed with " + c,
			Want: "a tar, a zip, a parquet file or a folder",
			Hint: "unpack it: images are read by their offset, which compression does not allow"}
	}
	if n == 0 {
		return &FormatError{Path: name, Got: "an empty file", Want: "a tar, a zip, a parquet file or a folder"}
	}
	return nil
}
