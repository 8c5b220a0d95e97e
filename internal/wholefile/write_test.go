package wholefile_test

import (
	"fmt"
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

// What cannot be put in its place leaves nothing behind.
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
