package wholefile_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"fspda/internal/wholefile"
)

func ExampleWrite() {
	dir, _ := os.MkdirTemp("", "")
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "cache", "entry")
	fmt.Println(wholefile.Write(path, []byte("old")), wholefile.Write(path, []byte("new")))
	content, _ := os.ReadFile(path)
	fmt.Println(string(content))
	// Output:
	// <nil> <nil>
	// new
}

// A failed write leaves no file.
func TestWriteLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "taken")
	if err := os.MkdirAll(filepath.Join(path, "by a folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := wholefile.Write(path, []byte("content")); err == nil {
		t.Error("a folder was replaced")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("%v, %v: want the folder alone", left, err)
	}
}

// A published file is readable by all users and complete, and no other file is left.
func TestPublish(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	for _, content := range []string{"one", "two, longer", ""} {
		if err := wholefile.Publish(path, []byte(content)); err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(path); err != nil || string(b) != content {
			t.Fatalf("read %q (%v), want %q", b, err, content)
		}
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o644 {
		t.Errorf("mode %v (%v), want 0644", st.Mode(), err)
	}
	full := errors.New("no room")
	err := wholefile.PublishBy(path, func(w io.Writer) error { return full })
	if !errors.Is(err, full) {
		t.Errorf("%v, want the writer's error", err)
	}
	if err := wholefile.Publish(filepath.Join(dir, "no", "f"), nil); err == nil {
		t.Error("no error for a missing folder")
	}
	if err := os.Mkdir(filepath.Join(dir, "g"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := wholefile.Publish(filepath.Join(dir, "g"), nil); err == nil {
		t.Error("no error for a folder in the way")
	}
	if all, _ := os.ReadDir(dir); len(all) != 2 {
		t.Errorf("%d entries, want f and g only", len(all))
	}
}
