package packed

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"fspda/data/images"
	"fspda/internal/bounded"
)

// Check verifies a packed set completely: the checks of [Open], and the SHA-256 of every shard. It
// returns all damaged shards as joined [images.FormatError]s. progress, if not nil, is called with
// numbers of bytes read.
func Check(ctx context.Context, dir string, progress func(n int)) error {
	m, err := ReadManifest(dir)
	if err != nil {
		return err
	}
	var damaged []error
	for _, part := range []Part{m.Train, m.Test} {
		for _, s := range part.Shards {
			if err := s.check(ctx, filepath.Join(dir, s.File), progress); ctx.Err() != nil {
				return ctx.Err()
			} else if err != nil {
				damaged = append(damaged, err)
			}
		}
	}
	if len(damaged) > 0 {
		return errors.Join(damaged...)
	}
	s, err := Open(dir)
	if err != nil {
		return err
	}
	return s.Close()
}

func (s *Shard) check(ctx context.Context, path string, progress func(n int)) error {
	f, err := bounded.Open(path)
	if err != nil {
		return fmt.Errorf("packed: %w", err)
	}
	defer f.Close() // read only: an error loses no data
	h := sha256.New()
	buffer := make([]byte, 1<<20)
	for ctx.Err() == nil {
		n, err := f.Read(buffer)
		h.Write(buffer[:n])
		if progress != nil {
			progress(n)
		}
		if err == io.EOF {
			break
		} else if err != nil {
			return fmt.Errorf("packed: reading %s: %w", path, err)
		}
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != s.SHA256 {
		return &images.FormatError{Path: path, Got: "SHA-256 " + got, Want: s.SHA256,
			Hint: "the shard is damaged; delete the folder and prepare the set again"}
	}
	return nil
}

func (m *Manifest) Bytes() int64 {
	var n int64
	for _, part := range []Part{m.Train, m.Test} {
		for _, s := range part.Shards {
			n += s.Bytes
		}
	}
	return n
}
