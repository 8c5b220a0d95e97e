package images

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// folderStore reads files below the folder with that path.
type folderStore string

func (s folderStore) read(dst []byte, p *picture) ([]byte, error) {
	path := filepath.Join(string(s), filepath.FromSlash(p.name))
	info, err := os.Stat(path) // before it is opened: opening a pipe would wait for a writer
	if target, e := os.Readlink(path); e == nil && errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("a link to %s, which does not exist", target)
	}
	if err != nil {
		return nil, cause(err)
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, cause(err)
	}
	defer f.Close() // read only: an error loses no data
	if info.Size() > maxEncoded {
		return nil, fmt.Errorf("a file of %d bytes, want at most %d", info.Size(), maxEncoded)
	}
	dst = grow(dst, int(info.Size()))
	if _, err := io.ReadFull(f, dst); err != nil {
		return nil, fmt.Errorf("the file ended while it was read: %w", cause(err))
	}
	return dst, nil
}

// cause removes the path from a file error, since the message names the image already.
func cause(err error) error {
	if p, ok := errors.AsType[*os.PathError](err); ok {
		return p.Err
	}
	return err
}

// escapePattern returns a pattern that matches only the path.
func escapePattern(path string) string {
	return strings.NewReplacer(`*`, `[*]`, `?`, `[?]`, `[`, `[[]`).Replace(path)
}
