package packed

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"fspda/internal/wholefile"
)

// suffix marks unfinished files.
const suffix = ".partial"

// writeFile writes a file atomically: readers see all of it or nothing, even after a power failure.
func writeFile(path string, write func(io.Writer) error) error {
	f, err := os.Create(path + suffix)
	if err == nil {
		err = wholefile.Finish(f, path, write)
	}
	if err != nil {
		return writing(path, err)
	}
	return nil
}

func writeBytes(path string, content []byte) error {
	return writeFile(path, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

// writing adds the remedy to a write error.
func writing(path string, err error) error {
	if p, ok := errors.AsType[*os.PathError](err); ok {
		err = p.Err
	}
	if link, ok := errors.AsType[*os.LinkError](err); ok {
		err = link.Err
	}
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("packed: writing %s: %w: free disk space and call again; finished shards are kept", path, err)
	case errors.Is(err, os.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("packed: writing %s: %w: choose a folder that can be written", path, err)
	}
	return fmt.Errorf("packed: writing %s: %w", path, err)
}
