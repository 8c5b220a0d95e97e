package runfolder

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Samples are read back, a truncated last line is ignored, and a resumed run drops those that it
// repeats.
func TestSamples(t *testing.T) {
	f := &Folder{Path: t.TempDir(), Disk: OSDisk{}}
	if all, err := readSamples(f.Path); err != nil || all != nil {
		t.Fatalf("%v, %v", all, err)
	}
	want := []Sample{{0, "a\n\"b\""}, {10, "é"}, {20, "c"}}
	for _, s := range want {
		if err := f.AppendSample(s); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(f.Path, samplesFile)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(text, `{"iter`...), 0o644); err != nil {
		t.Fatal(err)
	}
	if all, err := readSamples(f.Path); err != nil || !slices.Equal(all, want) {
		t.Errorf("%v, %v", all, err)
	}
	if err := f.trimSamples(20); err != nil {
		t.Fatal(err)
	}
	if all, err := readSamples(f.Path); err != nil || !slices.Equal(all, want[:2]) {
		t.Errorf("%v, %v after a resume", all, err)
	}
}
