//go:build linux

package cli

import (
	"crypto/sha256"
	"debug/elf"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// version --json has what a bug report needs; --sbom lists the modules of the program.
func TestVersion(t *testing.T) {
	var build struct {
		Version, Go, System string
		Features            []string
	}
	status, stdout, stderr := call(t, "version", "--json")
	if err := json.Unmarshal([]byte(stdout), &build); status != 0 || err != nil || build.Go != runtime.Version() ||
		build.System != runtime.GOOS+"/"+runtime.GOARCH || !strings.HasPrefix(build.Version, "0.") ||
		build.Features == nil {
		t.Errorf("exit status %d, %v, %+v\n%s", status, err, build, stderr)
	}
	names := parts(t, []byte(must(call(t, "version", "--sbom"))))
	if !slices.Contains(names, "std") {
		t.Errorf("the parts are %v", names)
	}
	licences := must(call(t, "version", "--licenses"))
	info, _ := debug.ReadBuildInfo()
	for _, m := range info.Deps {
		if want := "======== " + m.Path + " " + m.Version + ": "; !strings.Contains(licences, want) {
			t.Errorf("the program does not print the licence of %s %s: run go generate ./cli/docscmd", m.Path,
				m.Version)
		}
	}
}

func must(_ int, stdout, _ string) string { return stdout }

// parts lists the modules of a bill of materials.
func parts(t *testing.T, text []byte) (names []string) {
	t.Helper()
	var bill struct {
		BomFormat, SpecVersion string
		Components             []struct{ Type, Name, Version, PURL string }
	}
	if err := json.Unmarshal(text, &bill); err != nil || bill.BomFormat != "CycloneDX" || bill.SpecVersion != "1.6" {
		t.Fatalf("%v: %+v", err, bill)
	}
	for _, p := range bill.Components {
		if p.Type != "library" || p.PURL != "pkg:golang/"+p.Name+"@"+p.Version {
			t.Errorf("part %+v", p)
		}
		names = append(names, p.Name)
	}
	return names
}

// A release has stripped programs of four systems, checksums, the licence of every module, and a
// container's program that runs in an empty folder as a user without rights.
func TestRelease(t *testing.T) {
	if os.Getenv("FSPDA_LONG") == "" {
		t.Skip("building the program six times takes minutes: FSPDA_LONG=1 does")
	}
	dir := filepath.Join(t.TempDir(), "release")
	if out, err := exec.Command(filepath.Join("..", "deploy", "release.sh"), dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	check := exec.Command("sha256sum", "--check", "--strict", "SHA256SUMS")
	check.Dir = dir
	out, err := check.CombinedOutput()
	for _, name := range []string{"fspda-linux-amd64", "fspda-linux-arm64", "fspda-darwin-arm64",
		"fspda-windows-amd64.exe", "container/fspda-linux-amd64", "container/fspda-linux-arm64",
		"container/Dockerfile", "sbom.cdx.json"} {
		if err != nil || !strings.Contains(string(out), name+": OK") {
			t.Errorf("%s is not as its checksum says: %v\n%s", name, err, out)
		}
	}
	for _, name := range []string{"fspda-linux-amd64", "container/fspda-linux-arm64"} {
		f, err := elf.Open(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if f.Section(".symtab") != nil || f.Section(".debug_info") != nil {
			t.Errorf("%s is not stripped", name)
		}
		f.Close()
	}
	bill, err1 := os.ReadFile(filepath.Join(dir, "sbom.cdx.json"))
	licences, err2 := os.ReadFile(filepath.Join(dir, "LICENSES.txt"))
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	names := parts(t, bill)
	for _, name := range names {
		if name != "std" && !strings.Contains(string(licences), "======== "+name+" ") {
			t.Errorf("%s has no licence", name)
		}
	}
	t.Logf("%d modules, %d bytes of licences", len(names), len(licences))
	runInContainer(t, dir)
}

// runInContainer runs the container's program as the Dockerfile says, without a container engine.
func runInContainer(t *testing.T, dir string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "container", "Dockerfile"))
	if err != nil || !strings.Contains(string(text), "FROM scratch\n") ||
		!strings.Contains(string(text), "USER 65532:65532\n") {
		t.Errorf("%v: %s", err, text)
	}
	if os.Getuid() != 0 || runtime.GOARCH != "amd64" {
		t.Log("only root can run a program in an empty folder")
		return
	}
	root := t.TempDir()
	program, err := os.ReadFile(filepath.Join(dir, "container", "fspda-linux-amd64"))
	if err != nil {
		t.Fatal(err)
	}
	runs := filepath.Join(root, "runs")
	for _, err := range []error{os.WriteFile(filepath.Join(root, "fspda"), program, 0o755), os.Mkdir(runs, 0o755),
		os.Chown(runs, 65532, 65532), os.Chmod(root, 0o755)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("/fspda", "train", "--iterations", "5", "--batch", "8", "--data-train", "400",
		"--data-test", "50", "--quiet")
	cmd.Dir, cmd.Env = "/runs", []string{"HOME=/runs"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// Programs that are built of equal sources in two folders, with caches of their own, are equal.
func TestBuildsRepeat(t *testing.T) {
	if os.Getenv("FSPDA_LONG") == "" {
		t.Skip("building everything twice takes minutes: FSPDA_LONG=1 does")
	}
	var sums [2][32]byte
	var sources [2]string
	for i := range sources { // Both are copied before the first is built.
		source := filepath.Join(t.TempDir(), "source")
		sources[i] = source
		list := exec.Command("git", "ls-files", "-z")
		list.Dir = ".."
		names, err := list.Output()
		if err != nil {
			t.Skip("skipped: not a checkout of git, whose files are copied")
		}
		for name := range strings.SplitSeq(strings.Trim(string(names), "\x00"), "\x00") {
			text, err := os.ReadFile(filepath.Join("..", name))
			if err == nil {
				err = os.MkdirAll(filepath.Join(source, filepath.Dir(name)), 0o755)
			}
			if err == nil {
				err = os.WriteFile(filepath.Join(source, name), text, 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, source := range sources {
		program := filepath.Join(t.TempDir(), "fspda")
		build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", program,
			"./cmd/fspda")
		build.Dir = source
		build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOCACHE="+filepath.Join(t.TempDir(), "cache"))
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		text, err := os.ReadFile(program)
		if err != nil {
			t.Fatal(err)
		}
		sums[i] = sha256.Sum256(text)
	}
	if sums[0] != sums[1] {
		t.Errorf("the programs have the checksums %x and %x", sums[0], sums[1])
	}
}

// The code builds and computes the same as a module of any path.
func TestModulePath(t *testing.T) {
	if os.Getenv("FSPDA_LONG") == "" {
		t.Skip("building everything once more takes minutes: FSPDA_LONG=1 does")
	}
	out, err := exec.Command(filepath.Join("..", "deploy", "module.sh"), "example.org/you/fspda",
		filepath.Join(t.TempDir(), "module")).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "holds the module example.org/you/fspda") {
		t.Errorf("%v\n%s", err, out)
	}
}
