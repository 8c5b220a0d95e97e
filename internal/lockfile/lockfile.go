// Package lockfile locks folders by a file in them, so that one process at a time writes to a
// folder, and tells whether a process does.
package lockfile

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// Name is the name of the file. It stays in the folder.
const Name = ".lock"

// patience is how long [TryLock] waits for a lock. [Held] takes the lock for a moment, which must not
// look like another process that writes.
const patience = 300 * time.Millisecond

// TryLock locks a folder, unless another process holds the lock.
func TryLock(folder string) (*flock.Flock, bool, error) {
	l := flock.New(filepath.Join(folder, Name))
	ok, err := l.TryLock()
	if err == nil && !ok {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if ok, err = l.TryLockContext(ctx, patience/20); ctx.Err() != nil {
			err = nil
		}
	}
	return l, ok, err
}

// Held reports whether a process holds the lock of a folder, and whether that is known: the lock of
// another user may not be readable. It changes nothing in the folder.
func Held(folder string) (held, known bool) {
	path := filepath.Join(folder, Name)
	info, err := os.Stat(path)
	switch {
	case os.IsNotExist(err):
		return false, true
	case err != nil || !info.Mode().IsRegular(): // to open a named pipe would block
		return false, false
	}
	l := flock.New(path, flock.SetFlag(os.O_RDONLY))
	ok, err := l.TryRLock()
	_ = l.Close()
	return err == nil && !ok, err == nil
}
