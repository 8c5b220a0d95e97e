package command

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A source archive knows its commit, and a working tree does not.
func TestCommitOfArchive(t *testing.T) {
	if got := commitOf(archived); got != "" && len(got) < 40 {
		t.Errorf("the commit %q", got)
	}
	dir := t.TempDir()
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@b.c"}, args...)...)
		cmd.Dir = dir
		out, err := cmd.Output()
		if err != nil {
			t.Skipf("git %v: %v", args, err)
		}
		return string(out)
	}
	for name, text := range map[string]string{".gitattributes": "commit.txt export-subst\n",
		"commit.txt": "$Format:%H$\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	git("init", "-q")
	git("add", ".")
	git("commit", "-qm", "a")
	head := strings.TrimSpace(git("rev-parse", "HEAD"))
	if out := git("archive", "HEAD", "commit.txt"); !strings.Contains(out, head) {
		t.Errorf("the archive does not contain %s", head)
	}
	if commitOf(head+"\n") != head || commitOf("$Format:%H$\n") != "" {
		t.Errorf("%q, %q", commitOf(head), commitOf("$Format:%H$"))
	}
}
