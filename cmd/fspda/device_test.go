package main

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"fspda/cuda"
)

// skipWithGPU skips where a GPU can be used: what is tested is a machine without.
func skipWithGPU(t *testing.T) {
	t.Helper()
	if name, _ := cuda.Find().Engine(); name != "cpu" {
		t.Skipf("%s can be used here", name)
	}
}

// Without a GPU auto computes on the CPU and says so in one line; cuda is refused, with the remedy, before anything is begun.
func TestDeviceFallsBack(t *testing.T) {
	skipWithGPU(t)
	dir := t.TempDir()
	status, _, stderr := call(t, quick("--out", filepath.Join(dir, "auto"))...)
	if status != 0 || strings.Count(stderr, "cpu (") != 1 {
		t.Errorf("exit status %d\n%s", status, stderr)
	}
	status, _, stderr = call(t, quick("--device", "cuda", "--out", filepath.Join(dir, "cuda"))...)
	if status != exitBadInput || !strings.Contains(stderr, "fspda devices") {
		t.Errorf("exit status %d\n%s", status, stderr)
	}
	for _, bad := range []string{"gpu", "cuda:", "cuda:-1", "cpu:0"} {
		if status, _, stderr := call(t, quick("--device", bad)...); status != exitBadInput || !strings.Contains(stderr, "cuda:N") {
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

// A build without GPUs and without libjpeg-turbo opens no libraries, and so is linked to none.
func TestStaticBuildOpensNothing(t *testing.T) {
	for tags, want := range map[string]bool{"nocuda,static": false, "static": false, "nocuda": true} {
		out, err := exec.Command("go", "list", "-deps", "-tags", tags, ".").Output()
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(string(out), "purego"); got != want {
			t.Errorf("with the tags %s the program can open libraries: %t, want %t", tags, got, want)
		}
	}
}
