//go:build !windows

package cli

import (
	"debug/elf"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"fspda/cli/command"
	"fspda/cuda"
)

// skipWithGPU skips tests of machines without a GPU if a GPU can be used.
func skipWithGPU(t *testing.T) {
	t.Helper()
	if name, _ := cuda.Find().Engine(); name != "cpu" {
		t.Skipf("%s can be used here", name)
	}
}

// Without a GPU auto takes the CPU and says so in one line; cuda is refused, with advice, before
// the run starts.
func TestDeviceFallsBack(t *testing.T) {
	skipWithGPU(t)
	dir := t.TempDir()
	status, _, stderr := call(t, quick("--out", filepath.Join(dir, "auto"))...)
	if status != 0 || strings.Count(stderr, "cpu (") != 1 {
		t.Errorf("exit status %d\n%s", status, stderr)
	}
	status, _, stderr = call(t, quick("--device", "cuda", "--out", filepath.Join(dir, "cuda"))...)
	if status != command.ExitBadInput || !strings.Contains(stderr, "fspda devices") {
		t.Errorf("exit status %d\n%s", status, stderr)
	}
	for bad, want := range map[string]string{"gpu": "called cuda here", "cuda:": "cuda:N", "cuda:-1": "cuda:N",
		"cpu:0": "cuda:N"} {
		if status, _, stderr := call(t, quick("--device", bad)...); status != command.ExitBadInput ||
			!strings.Contains(stderr, want) {
			t.Errorf("--device %s: exit status %d\n%s", bad, status, stderr)
		}
	}
}

func TestDevices(t *testing.T) {
	skipWithGPU(t)
	status, stdout, _ := call(t, "devices")
	if status != 0 || !strings.Contains(stdout, "engine    cpu (") {
		t.Errorf("exit status %d\n%s", status, stdout)
	}
	status, stdout, _ = call(t, "devices", "--json")
	var r cuda.Report
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || status != 0 || r.Problem == "" && len(r.GPUs) == 0 {
		t.Errorf("exit status %d, %v\n%s", status, err, stdout)
	}
}

// A build without GPUs and libjpeg-turbo opens no shared libraries, so it is not linked to the
// dynamic loader. Only builds with the tag cu contain gorgonia.org/cu.
func TestStaticBuildOpensNothing(t *testing.T) {
	for tags, want := range map[string]bool{"nocuda,static": false, "static": false, "": true} {
		out, err := exec.Command("go", "list", "-deps", "-tags", tags, "fspda/cmd/fspda").Output()
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(string(out), "purego"); got != want {
			t.Errorf("with the tags %s the program can open libraries: %t, want %t", tags, got, want)
		}
		if strings.Contains(string(out), "gorgonia.org/cu\n") {
			t.Errorf("with the tags %q the program needs a toolkit", tags)
		}
	}
}

// The program builds without a C compiler with each of the tags and runs. With static, and with
// nocuda, which leaves out all that opens libraries, it needs no
// shared library, not even the dynamic loader.
func TestBuildTags(t *testing.T) {
	if os.Getenv("FSPDA_LONG") == "" {
		t.Skip("linking the program four times takes a minute: FSPDA_LONG=1 does")
	}
	if runtime.GOOS != "linux" {
		t.Skip("programs of this system are linked otherwise")
	}
	for tags, static := range map[string]bool{"": false, "nocuda": true, "static": true, "nocuda,static": true} {
		program := filepath.Join(t.TempDir(), "fspda")
		cmd := exec.Command("go", "build", "-tags", tags, "-o", program, "fspda/cmd/fspda")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("tags %q: %v\n%s", tags, err, out)
		}
		out, err := exec.Command(program, "devices").Output()
		if err != nil || !strings.Contains(string(out), "engine ") {
			t.Errorf("tags %q: %v, %s", tags, err, out)
		}
		f, err := elf.Open(program)
		if err != nil {
			t.Fatal(err)
		}
		interpreted := slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP })
		needs, err := f.ImportedLibraries()
		if err != nil || interpreted == static || static && len(needs) > 0 {
			t.Errorf("tags %q: interpreter %t, libraries %v, %v", tags, interpreted, needs, err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}
