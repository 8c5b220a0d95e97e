package dynlib

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
)

// evidence is what the files around a cuDNN tell of it; 0 where nothing does.
//
// It is needed because a cuDNN that was opened, only to be asked, stays: its first library opens
// the others by their bare names, and whichever comes next then gets the parts of the first, and
// says that it has its version.
type evidence struct {
	cuda    int // major version that it is built for
	version int // as cudnnGetVersion says it: 91002
}

// cudnnEvidence looks around a libcudnn.so.9.
func cudnnEvidence(path string) evidence {
	e := evidence{cuda: neighbours(filepath.Dir(path))}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		e.version = versionIn(filepath.Base(real), fullName)
		if e.cuda == 0 {
			e.cuda = neighbours(filepath.Dir(real))
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

// versionIn is the version that a text names, by its last three groups.
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

// neighbours is the version of CUDA of the cuBLAS in a folder, if there is one.
func neighbours(folder string) int {
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

// wheelOf is what the wheel says that a file came with. ok is false where it came with none, or
// with one of two.
func wheelOf(path string) (e evidence, ok bool) {
	site := filepath.Join(filepath.Dir(path), "../../..") // above nvidia/cudnn/lib
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
