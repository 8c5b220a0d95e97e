package lockfile

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// A lock is held from TryLock to Unlock, which asking does not change.
func TestHeld(t *testing.T) {
	dir := t.TempDir()
	want := func(name string, held, known bool) {
		t.Helper()
		if h, k := Held(dir); h != held || k != known {
			t.Errorf("%s: held %v, known %v", name, h, k)
		}
	}
	want("no lock", false, true)
	if _, err := os.Stat(filepath.Join(dir, Name)); err == nil {
		t.Error("asking made the file")
	}
	l, ok, err := TryLock(dir)
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	want("locked", true, true)
	if _, ok, err := TryLock(dir); ok || err != nil {
		t.Errorf("locked twice: %v, %v", ok, err)
	}
	if err := l.Unlock(); err != nil {
		t.Fatal(err)
	}
	want("unlocked", false, true)
	if _, ok, err := TryLock(filepath.Join(dir, "none")); ok || err == nil {
		t.Errorf("a folder that is not there: %v, %v", ok, err)
	}
	if err := os.Remove(filepath.Join(dir, Name)); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, Name), 0o755); err != nil {
		t.Fatal(err)
	}
	want("a folder in place of the file", false, false)
}

// Who asks all the time keeps nobody from the lock.
func TestAskingLocksNobodyOut(t *testing.T) {
	dir, done := t.TempDir(), make(chan struct{})
	var ask sync.WaitGroup
	for range 4 {
		ask.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					Held(dir)
				}
			}
		})
	}
	for range 200 {
		l, ok, err := TryLock(dir)
		if !ok || err != nil {
			t.Fatal(ok, err)
		}
		_ = l.Unlock()
	}
	close(done)
	ask.Wait()
}
