package dynlib

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The files around a cuDNN show its version and CUDA version, so that one that does not fit is not
// opened.
func TestInspectCUDNN(t *testing.T) {
	const header = "#define CUDNN_MAJOR 9\n#define CUDNN_MINOR 10\n#define CUDNN_PATCHLEVEL 2\n"
	for name, c := range map[string]struct {
		files []string
		at    string
		want  cudnnBuild
	}{
		"a wheel": {[]string{"site/nvidia/cudnn/lib/libcudnn.so.9",
			"site/nvidia_cudnn_cu13-9.26.0.51.dist-info/METADATA", "site/nvidia/cudnn/lib/libcublas.so.12"},
			"site/nvidia/cudnn/lib/libcudnn.so.9", cudnnBuild{13, 92600}},
		"two wheels": {[]string{"site/nvidia/cudnn/lib/libcudnn.so.9",
			"site/nvidia_cudnn_cu13-9.26.0.51.dist-info/METADATA",
			"site/nvidia_cudnn_cu12-9.10.2.21.dist-info/METADATA"},
			"site/nvidia/cudnn/lib/libcudnn.so.9", cudnnBuild{}},
		"a toolkit": {[]string{"cuda/lib64/libcudnn.so.9", "cuda/lib64/libcublas.so.12",
			"cuda/include/cudnn_version.h"}, "cuda/lib64/libcudnn.so.9", cudnnBuild{12, 91002}},
		"a full name": {[]string{"lib/libcudnn.so.9.8.0", "lib/libcublas.so.13"}, "lib/libcudnn.so.9",
			cudnnBuild{13, 90800}},
		"both versions": {[]string{"lib/libcudnn.so.9", "lib/libcublas.so.13", "lib/libcublas.so.12"},
			"lib/libcudnn.so.9", cudnnBuild{}},
		"nothing": {[]string{"lib/libcudnn.so.9"}, "lib/libcudnn.so.9", cudnnBuild{}},
	} {
		_, root := testFinder(t, &fakeLoader{}, map[string]string{}, c.files...)
		if name == "a full name" {
			if err := os.Symlink("libcudnn.so.9.8.0", filepath.Join(root, c.at)); err != nil {
				t.Fatal(err)
			}
		}
		if name == "a toolkit" {
			if err := os.WriteFile(filepath.Join(root, "cuda/include/cudnn_version.h"), []byte(header),
				0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := inspectCUDNN(filepath.Join(root, c.at)); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// A file that Precheck rejects is not opened, because it would stay loaded.
func TestRefusedUnopened(t *testing.T) {
	s := &fakeLoader{}
	l := &Library{Name: "a library", Files: []string{"libx.so.1"}, Precheck: func(path string) error {
		if strings.Contains(path, "named") {
			return errors.New("built for something else")
		}
		return nil
	}}
	f, _ := testFinder(t, s, map[string]string{PathVariable: "ROOT/named", "CUDA_HOME": "ROOT/toolkit"},
		"named/libx.so.1", "toolkit/lib64/libx.so.1")
	h, err := f.Open(l)
	if err != nil || !strings.Contains(h.Path, "toolkit") || len(s.opened) != 1 {
		t.Errorf("opened %v (%v)", s.opened, err)
	}
}
