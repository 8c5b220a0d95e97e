//go:build linux && amd64 && !nocuda && !static

package cli

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"fspda/bench/acceptance"
	"fspda/internal/testing/fakecuda"
)

// fakePython stands for a python3 with NVIDIA's libraries as wheels, whose PyTorch cannot be used.
const fakePython = `#!/bin/sh
case $1 in
-c) echo "$FAKE_PACKAGES" ;;
*) echo '{"error": "no PyTorch here"}' ;;
esac
`

// bareMachine makes a folder of wheels, a folder of programs with python3, and one of the driver
// alone, from the fake libraries.
func bareMachine(t *testing.T, library string) (packages, programs, driver string) {
	t.Helper()
	root := t.TempDir()
	packages, programs, driver = filepath.Join(root, "site"), filepath.Join(root, "bin"), filepath.Join(root, "driver")
	for _, dir := range []string{programs, driver} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{"nvidia/cu13/lib", "nvidia/cudnn/lib"} {
		if err := os.CopyFS(filepath.Join(packages, dir), os.DirFS(library)); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(filepath.Join(library, "libcuda.so.1"))
	if err == nil {
		err = os.WriteFile(filepath.Join(driver, "libcuda.so.1"), text, 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(programs, "python3"), []byte(fakePython), 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	return packages, programs, driver
}

// The file of make card runs by itself on a machine with a driver, a python3 with libraries and an
// empty home. It leaves few, small files, and a second call goes on with them.
func TestCardBundle(t *testing.T) {
	if os.Getenv("FSPDA_LONG") == "" {
		t.Skip("takes minutes: set FSPDA_LONG=1")
	}
	b := newFakeMachine(t, fakecuda.Variant{})
	if text, err := exec.Command("make", "-C", "..", "card").CombinedOutput(); err != nil {
		t.Fatalf("make card: %v\n%s", err, text)
	}
	bundle := filepath.Join(b.work, "card.sh")
	text, err := os.ReadFile("../bin/card.sh")
	if err == nil {
		err = os.WriteFile(bundle, text, 0o600)
	}
	if err != nil || len(text) > 40<<20 {
		t.Fatalf("%v; %d bytes, want at most 40 MB", err, len(text))
	}
	home := filepath.Join(b.work, "home")
	if err := os.Mkdir(home, 0o500); err != nil {
		t.Fatal(err)
	}
	packages, programs, driver := bareMachine(t, b.library)
	run := func(parts ...string) {
		t.Helper()
		cmd := exec.Command("sh", append([]string{bundle, "results"}, parts...)...)
		cmd.Dir = b.work
		cmd.Env = append(fakecuda.Machine{Memory: 4 << 30}.Env(driver, b.report), "HOME="+home,
			"PATH="+programs+":/usr/bin:/bin", "FAKE_PACKAGES="+packages, "CARD_FLAGS=--tiny")
		out, errs := &bytes.Buffer{}, &bytes.Buffer{}
		cmd.Stdout, cmd.Stderr = out, errs
		if status, _, _ := b.end(cmd, cmd.Run(), out, errs); status != 0 {
			t.Fatalf("%v: exit status %d\n%s%s", parts, status, out, errs)
		}
	}
	run("resnet18/tune-bf16")
	run("resnet18/bf16")
	r := cardResults(t, filepath.Join(b.work, "results"))
	for _, part := range []string{"resnet18/tune-bf16-2-32", "resnet18/bf16-2-32"} {
		found := false
		for _, o := range r.Outcomes {
			found = found || o.Part == part && o.Status == acceptance.Done
		}
		if !found {
			t.Errorf("no result of %s: %+v", part, r.Outcomes)
		}
	}
	want := "card.json card.md choices.jsonl console.log cubins.tar.gz logs.tar.gz"
	if got := filesOf(t, filepath.Join(b.work, "results")); got != want {
		t.Errorf("left %s, want %s", got, want)
	}
	if left := filesOf(t, home); left != "" {
		t.Errorf("left in the home: %s", left)
	}
	if logs, err := exec.Command("tar", "-tzf", filepath.Join(b.work, "results", "logs.tar.gz")).Output(); err != nil ||
		!strings.Contains(string(logs), "resnet18-tune-bf16-2-32.log") ||
		!strings.Contains(string(logs), "resnet18-bf16-2-32.log") {
		t.Errorf("logs: %s, %v", logs, err)
	}
}

// filesOf returns the names in a folder, which are small files.
func filesOf(t *testing.T, dir string) string {
	t.Helper()
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range all {
		names = append(names, e.Name())
		if info, err := e.Info(); err != nil || !info.Mode().IsRegular() || info.Size() > 16<<20 {
			t.Errorf("%s: %v, %v: want a file of at most 16 MB", e.Name(), info, err)
		}
	}
	return strings.Join(names, " ")
}
