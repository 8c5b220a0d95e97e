package cuda

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"fspda/cuda/cublas"
	"fspda/cuda/cudnn"
	"fspda/cuda/driver"
	"fspda/cuda/dynlib"
)

// realToolkit returns the libraries of a version of CUDA on this machine, or skips the test.
func realToolkit(t *testing.T, major, cc int) toolkit {
	t.Helper()
	found := findToolkit(dynlib.System(), major, cc)
	if err := found.usable(); err != nil {
		t.Skipf("%v (%s names a folder with them)", err, dynlib.PathVariable)
	}
	return found
}

// linkLibraries links the files of a toolkit, and those in the same folders, to the folders that
// folder names.
func linkLibraries(t *testing.T, from toolkit, folder func(l *dynlib.Library) string) {
	t.Helper()
	for _, l := range from.all() {
		if l.err != nil {
			continue
		}
		all, err := filepath.Glob(filepath.Join(filepath.Dir(l.handle.Path), "*.so*"))
		to := folder(l.library)
		if err = firstError(err, os.MkdirAll(to, 0o777)); err != nil {
			t.Fatal(err)
		}
		for _, file := range all {
			if err := os.Symlink(file, filepath.Join(to, filepath.Base(file))); err != nil && !os.IsExist(err) {
				t.Fatal(err)
			}
		}
	}
}

func firstError(all ...error) error {
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	return nil
}

// layouts is the ways in which NVIDIA's libraries are installed: the folder of a library below a
// root, and the environment that names it.
var layouts = map[string]struct {
	folder func(root string, l *dynlib.Library) string
	env    map[string]string
}{
	"wheels in an environment": {func(root string, l *dynlib.Library) string {
		return filepath.Join(root, "lib/python3.12/site-packages", l.WheelDirs[len(l.WheelDirs)-1])
	}, map[string]string{"VIRTUAL_ENV": "ROOT"}},
	"wheels of one folder, of the python3 in PATH": {func(root string, l *dynlib.Library) string {
		return filepath.Join(root, "lib/python3.12/site-packages", l.WheelDirs[0])
	}, map[string]string{"PATH": "ROOT/bin"}},
	"conda": {func(root string, _ *dynlib.Library) string { return filepath.Join(root, "lib") },
		map[string]string{"CONDA_PREFIX": "ROOT"}},
	"a toolkit": {func(root string, _ *dynlib.Library) string { return filepath.Join(root, "lib64") },
		map[string]string{"CUDA_HOME": "ROOT"}},
	"the toolkit": {func(root string, _ *dynlib.Library) string {
		return filepath.Join(root, "usr/local/cuda/lib64")
	}, nil},
	"toolkits side by side": {func(root string, _ *dynlib.Library) string {
		return filepath.Join(root, "usr/local/cuda-12.9/lib64")
	}, nil},
	"a folder": {func(root string, _ *dynlib.Library) string { return root },
		map[string]string{dynlib.PathVariable: "ROOT"}},
	"a folder of environment": {func(root string, l *dynlib.Library) string {
		return filepath.Join(root, "lib/python3.9/site-packages", l.WheelDirs[0])
	}, map[string]string{dynlib.PathVariable: "ROOT"}},
}

// finderIn returns the finder of a machine that has nothing but the files below root.
func finderIn(root string, env map[string]string) *dynlib.Finder {
	f := dynlib.System()
	f.Root, f.Program = root, ""
	f.Env = func(k string) string { return strings.ReplaceAll(env[k], "ROOT", root) }
	return f
}

// inOwnProcess runs a test again in a process of its own, for a process can load only one cuDNN. It
// is false in that process.
func inOwnProcess(t *testing.T) bool {
	t.Helper()
	const variable = "FSPDA_TEST_APART"
	if os.Getenv(variable) == t.Name() {
		return false
	}
	parts := strings.Split(t.Name(), "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	cmd := exec.Command(os.Args[0], "-test.run="+strings.Join(parts, "/"), "-test.v")
	cmd.Env = append(os.Environ(), variable+"="+t.Name())
	out, err := cmd.CombinedOutput()
	switch {
	case err != nil:
		t.Errorf("%v\n%s", err, out)
	case strings.Contains(string(out), "--- SKIP: "+t.Name()):
		t.Skip(string(out))
	}
	return true
}

// The libraries of CUDA 12 and 13, as NVIDIA ships them, are found in every layout, and have all
// functions.
func TestLayouts(t *testing.T) {
	for _, major := range []int{12, 13} {
		t.Run(fmt.Sprint(major), func(t *testing.T) {
			if inOwnProcess(t) {
				return
			}
			real := realToolkit(t, major, 90)
			for name, layout := range layouts {
				root := t.TempDir()
				python := filepath.Join(root, "bin/python3")
				if err := firstError(os.MkdirAll(filepath.Dir(python), 0o777),
					os.WriteFile(python, nil, 0o777)); err != nil {
					t.Fatal(err)
				}
				linkLibraries(t, real, func(l *dynlib.Library) string { return layout.folder(root, l) })
				found, err := bestToolkit(finderIn(root, layout.env), 1000*major+90, 90)
				if err != nil || found.major != major || found.missing() != real.missing() {
					t.Errorf("%s: CUDA %d with %d missing, want %d with %d (%v)", name, found.major, found.missing(),
						major, real.missing(), err)
					continue
				}
				for _, l := range found.all() {
					if l.err == nil && !strings.HasPrefix(l.handle.Path, root) {
						t.Errorf("%s: %s of %s", name, l.library.Name, l.handle.Path)
					}
				}
				bindAll(t, found)
			}
		})
	}
}

func bindAll(t *testing.T, found toolkit) {
	t.Helper()
	_, blas := cublas.Bind(found.cublas.handle)
	_, lt := cublas.BindLt(found.lt.handle)
	if err := firstError(blas, lt); err != nil {
		t.Error(err)
	}
	if found.cudnn.err != nil {
		return
	}
	if _, err := cudnn.Bind(found.cudnn.handle); err != nil {
		t.Error(err)
	}
}

// Of two versions side by side an H100 takes the libraries of CUDA 13, and a V100 the libraries of
// CUDA 12 with a cuDNN that has kernels for it, whichever is found first and whatever the driver.
// With a driver of CUDA 12 an H100 takes CUDA 12 too.
func TestVersions(t *testing.T) {
	for i, c := range []struct {
		first       string
		version, cc int
		want        int
	}{{"old", 13000, 90, 13}, {"new", 13000, 70, 12}, {"old", 13020, 70, 12}, {"new", 12040, 90, 12}} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			if inOwnProcess(t) {
				return
			}
			root, second := t.TempDir(), map[string]string{"old": "new", "new": "old"}[c.first]
			for _, major := range []int{12, 13} {
				linkLibraries(t, withoutOpening(t, major), func(*dynlib.Library) string {
					return filepath.Join(root, map[int]string{12: "old", 13: "new"}[major])
				})
			}
			f := finderIn(root, map[string]string{dynlib.PathVariable: filepath.Join(root, c.first) + ":" +
				filepath.Join(root, second)})
			found, err := bestToolkit(f, c.version, c.cc)
			if err != nil || found.major != c.want || found.missing() > 0 {
				t.Errorf("driver %s, compute capability %d: CUDA %d with %d missing, want %d (%v)",
					driver.VersionText(c.version), c.cc, found.major, found.missing(), c.want, found.cudnn.err)
			}
		})
	}
}

// withoutOpening returns a toolkit of this machine whose cuDNN is in wheels, and is not opened.
func withoutOpening(t *testing.T, major int) toolkit {
	t.Helper()
	f := dynlib.System()
	all := toolkit{major, find(f, dynlib.NVRTC(major)), find(f, dynlib.CUBLAS(major)), find(f, dynlib.CUBLASLt(major)),
		found{library: dynlib.CUDNN(major, 90)}}
	if err := all.usable(); err != nil {
		t.Skipf("%v (%s names a folder with them)", err, dynlib.PathVariable)
	}
	wheels := filepath.Join(filepath.Dir(all.cublas.handle.Path), "../../cudnn/lib/libcudnn.so.9")
	if _, err := os.Stat(wheels); err != nil {
		t.Skipf("%v: install the wheel of cuDNN beside that of cuBLAS", err)
	}
	all.cudnn.handle = &dynlib.Handle{Library: all.cudnn.library, Path: wheels}
	return all
}
