package dynlib

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
)

// cudnnBuild describes a cuDNN installation, as far as the files around it show; unknown numbers
// are 0.
//
// It lets the program reject a cuDNN without opening it. An opened cuDNN stays loaded: its first
// library opens the others by their bare names, and a second cuDNN would get the parts, and report
// the version, of the first.
type cudnnBuild struct {
	cuda    int // CUDA major version that it is built for
	version int // cudnnGetVersion returns the same format: 91002
}

// inspectCUDNN examines the files around a libcudnn.so.9.
func inspectCUDNN(path string) cudnnBuild {
	e := cudnnBuild{cuda: cublasMajor(filepath.Dir(path))}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		e.version = versionIn(filepath.Base(real), fullName)
		if e.cuda == 0 {
			e.cuda = cublasMajor(filepath.Dir(real))
		}
		if w, ok := wheelOf(real); ok {
			return w
		}
	}
	if e.version == 0 {
		if header, err := os.ReadFile(filepath.Join(filepath.Dir(path), "../include/cudnn_version.h")); err == nil {
			e.version = versionIn(string(header), headerVersion)
		}
	}
	return e
}

var (
	fullName      = regexp.MustCompile(`^libcudnn\.so\.(\d+)\.(\d+)\.(\d+)$`)
	wheelName     = regexp.MustCompile(`^nvidia_cudnn_cu(\d+)-(\d+)\.(\d+)\.(\d+)`)
	headerVersion = regexp.MustCompile(
		`(?s)#define CUDNN_MAJOR (\d+).*?#define CUDNN_MINOR (\d+).*?#define CUDNN_PATCHLEVEL (\d+)`)
)

// versionIn returns the version in a text, from the last three groups of the pattern, or 0.
func versionIn(text string, pattern *regexp.Regexp) int {
	m := pattern.FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	n := 0
	for i, scale := range []int{10000, 100, 1} {
		digits, _ := strconv.Atoi(m[len(m)-3+i])
		n += scale * digits
	}
	return n
}

// cublasMajor returns the CUDA version of the only cuBLAS in a folder, or 0.
func cublasMajor(folder string) int {
	found := 0
	for _, major := range []int{12, 13} {
		if isFile(filepath.Join(folder, fmt.Sprintf("libcublas.so.%d", major))) {
			if found != 0 {
				return 0
			}
			found = major
		}
	}
	return found
}

// wheelOf reads the version from the name of the wheel that a file belongs to. ok is false unless
// the file belongs to exactly one.
func wheelOf(path string) (e cudnnBuild, ok bool) {
	site := filepath.Join(filepath.Dir(path), "../../..") // the parent of nvidia/cudnn/lib
	all := existing(filepath.Join(site, "nvidia_cudnn_cu*.dist-info"))
	if len(all) != 1 || filepath.Base(filepath.Dir(filepath.Dir(path))) != "cudnn" {
		return e, false
	}
	name := filepath.Base(all[0])
	m := wheelName.FindStringSubmatch(name)
	if m == nil {
		return e, false
	}
	e.cuda, _ = strconv.Atoi(m[1])
	e.version = versionIn(name, wheelName)
	return e, true
}
