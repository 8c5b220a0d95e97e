package realdata

import (
	"os"
	"path/filepath"
	"testing"
)

func TestPath(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("FSPDA_DATA", dir)
	want := filepath.Join(dir, "set.bin")
	if err := os.WriteFile(want, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := Path(t, "set.bin"); got != want {
		t.Errorf("found %s, want %s", got, want)
	}
	skipped := false
	t.Run("absent", func(t *testing.T) {
		defer func() { skipped = t.Skipped() }()
		Path(t, "no such set")
	})
	if !skipped {
		t.Error("a test without its data was not skipped")
	}
}
