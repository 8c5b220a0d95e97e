package runfolder

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// A shell reads back what was written, whatever stands in it.
func TestCommandLine(t *testing.T) {
	args := []string{"/somewhere/fspda", "train", "--edges", "k-edges(20)", "--out", "my runs/it's $HOME", "",
		"--mask=randk", "a;b|c&d>e", "grün*", "\\"}
	line := CommandLine(args)
	if want := `fspda train --edges 'k-edges(20)' --out 'my runs/it'\''s $HOME' '' --mask=randk`; !strings.HasPrefix(
		line, want) {
		t.Errorf("got  %s\nwant %s", line, want)
	}
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("needs sh")
	}
	out, err := exec.Command(sh, "-c", "fspda() { printf '%s\\n' fspda \"$@\"; }\n"+line).Output()
	if err != nil {
		t.Fatal(err)
	}
	args[0] = "fspda"
	if got := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n"); !slices.Equal(got, args) {
		t.Errorf("a shell reads %q, want %q", got, args)
	}
}
