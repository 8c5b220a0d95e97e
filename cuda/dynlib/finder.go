package dynlib

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// PathVariable is the environment variable that lists the folders to search first, separated as in
// PATH.
const PathVariable = "FSPDA_CUDA_PATH"

// Finder searches for libraries. Create one with [System].
type Finder struct {
	Env     func(string) string // reads the environment
	Program string              // path of the running program
	Root    string              // root of the file system: "/"

	opener opener
}

// searchDir is a folder to search, with the reason.
type searchDir struct {
	folder string
	why    string
	wheels bool // folder is a site-packages: libraries lie in subfolders
}

// sitePackages is the folder of packages in a Python environment.
const sitePackages = "lib/python3*/site-packages"

func (p searchDir) same(q searchDir) bool { return p.folder == q.folder && p.wheels == q.wheels }

// opener opens libraries. Tests replace it.
type opener interface {
	open(path string, global bool) (uintptr, error)
	symbol(handle uintptr, name string) (uintptr, error)
	close(handle uintptr) error
}

// System returns the Finder for this machine.
func System() *Finder {
	program, err := os.Executable()
	if err != nil {
		program = ""
	}
	return &Finder{Env: os.Getenv, Program: program, Root: "/", opener: system{}}
}

// None returns a Finder that finds nothing, like a machine without NVIDIA's libraries.
func None() *Finder {
	return &Finder{Env: func(string) string { return "" }, Root: "/nowhere", opener: noLoader{}}
}

// noLoader opens no file.
type noLoader struct{}

func (noLoader) open(string, bool) (uintptr, error) { return 0, errors.New("no such file") }

func (noLoader) symbol(uintptr, string) (uintptr, error) { return 0, errors.New("no such function") }

func (noLoader) close(uintptr) error { return nil }

// searchDirs lists the folders in search order.
func (f *Finder) searchDirs() []searchDir {
	var all []searchDir
	add := func(why string, wheels bool, patterns ...string) {
		for _, p := range patterns {
			for _, folder := range existing(p) {
				if p := (searchDir{folder, why, wheels}); !slices.ContainsFunc(all, p.same) {
					all = append(all, p)
				}
			}
		}
	}
	for _, folder := range filepath.SplitList(f.Env(PathVariable)) {
		if folder != "" {
			const why = "the environment (" + PathVariable + ")"
			add(why, false, folder)
			add(why, true, folder, filepath.Join(folder, sitePackages))
		}
	}
	if f.Program != "" {
		dir := filepath.Dir(f.Program)
		add("the folder of the program", false, dir, filepath.Join(dir, "lib"))
	}
	f.addPython(add)
	f.addToolkits(add)
	return all
}

// addPython adds the site-packages of the active environment, of every python3 on PATH, of the
// user, and of the system.
func (f *Finder) addPython(add func(why string, wheels bool, patterns ...string)) {
	for _, v := range []string{"VIRTUAL_ENV", "CONDA_PREFIX"} {
		if dir := f.Env(v); dir != "" {
			add("Python packages ("+v+")", true, filepath.Join(dir, sitePackages))
			add("Python packages ("+v+")", false, filepath.Join(dir, "lib"))
		}
	}
	for _, dir := range filepath.SplitList(f.Env("PATH")) {
		// the link is not resolved, because an environment's python3 is a link
		if found := existing(filepath.Join(dir, "python3")); dir != "" && found != nil {
			add("Python packages (of "+found[0]+")", true, filepath.Join(filepath.Dir(dir), sitePackages))
		}
	}
	if home := f.Env("HOME"); home != "" {
		add("Python packages (of the user)", true, filepath.Join(home, ".local", sitePackages))
	}
	add("Python packages (of the system)", true, filepath.Join(f.Root, "usr/local/lib/python3*/dist-packages"),
		filepath.Join(f.Root, "usr/local/lib/python3*/site-packages"), filepath.Join(f.Root,
			"usr/lib/python3*/site-packages"), filepath.Join(f.Root, "usr/lib/python3/dist-packages"))
}

// addToolkits adds the CUDA toolkits that variables name, then the default one, then others from
// newest to oldest.
func (f *Finder) addToolkits(add func(why string, wheels bool, patterns ...string)) {
	for _, v := range []string{"CUDA_HOME", "CUDA_PATH"} {
		if dir := f.Env(v); dir != "" {
			add("a CUDA toolkit ("+v+")", false, filepath.Join(dir, "lib64"), filepath.Join(dir, "lib"))
		}
	}
	add("a CUDA toolkit", false, filepath.Join(f.Root, "usr/local/cuda/lib64"))
	versions := existing(filepath.Join(f.Root, "usr/local/cuda-*/lib64"))
	slices.Reverse(versions)
	add("a CUDA toolkit", false, versions...)
}

// existing returns the files and folders that match a pattern, sorted.
func existing(pattern string) []string {
	found, err := filepath.Glob(pattern)
	if err != nil { // the folder name contains a bracket
		return nil
	}
	return found
}

// candidate is a file to try, with the reason.
type candidate struct{ path, why string }

// candidates returns the files to try for l, in search order: preferred paths, search folders,
// names for the system's loader, fallback paths.
func (f *Finder) candidates(l *Library) []candidate {
	var found []candidate
	addFixed := func(paths []string) {
		for _, path := range paths {
			if path = filepath.Join(f.Root, path); isFile(path) {
				found = append(found, candidate{path, "a standard path"})
			}
		}
	}
	addFixed(l.PreferredPaths)
	for _, p := range f.searchDirs() {
		for _, folder := range p.folders(l) {
			for _, name := range l.Files {
				if path := filepath.Join(folder, name); isFile(path) {
					found = append(found, candidate{path, p.why})
				}
			}
		}
	}
	for _, name := range l.Files {
		found = append(found, candidate{name, "the system's loader"})
	}
	addFixed(l.FallbackPaths)
	return found
}

// folders returns the subfolders that may contain l.
func (p searchDir) folders(l *Library) []string {
	if !p.wheels {
		return []string{p.folder}
	}
	var all []string
	for _, w := range l.WheelDirs {
		all = append(all, filepath.Join(p.folder, filepath.FromSlash(w)))
	}
	return all
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// Open opens the first candidate for l that loads and passes its checks. The error is an *Error.
func (f *Finder) Open(l *Library) (*Handle, error) {
	fail := &Error{Library: l.Name, Hint: l.Hint}
	for _, c := range f.candidates(l) {
		h, err := f.try(l, c)
		if err == nil {
			return h, nil
		}
		if !strings.Contains(c.path, string(filepath.Separator)) && len(fail.Attempts) > 0 {
			continue // if files were found, a name unknown to the loader adds nothing
		}
		fail.Attempts = append(fail.Attempts, Attempt{c.path, err.Error()})
	}
	for _, p := range f.searchDirs() {
		fail.Searched = append(fail.Searched, p.folder)
	}
	return nil, fail
}

// try opens one candidate and the files that must be loaded before and after it.
func (f *Finder) try(l *Library, c candidate) (*Handle, error) {
	if l.Precheck != nil && strings.Contains(c.path, string(filepath.Separator)) {
		if err := l.Precheck(c.path); err != nil {
			return nil, err
		}
	}
	if err := f.openSiblings(c.path, l.LoadBefore, required); err != nil {
		return nil, err
	}
	handle, err := f.opener.open(c.path, len(l.LoadAfter) > 0)
	if err != nil {
		return nil, err
	}
	h := &Handle{Library: l, Path: c.path, Origin: c.why, handle: handle, opener: f.opener}
	if l.Accept != nil {
		if err := l.Accept(h); err != nil {
			_ = f.opener.close(handle) // an error changes nothing: the library is not used
			return nil, err
		}
	}
	if err := f.openSiblings(c.path, l.LoadAfter, required); err != nil {
		return nil, err
	}
	return h, f.openSiblings(c.path, l.LoadOptional, optional)
}

// Whether a sibling that does not open is an error.
const (
	required = true
	optional = false
)

// openSiblings opens, with global symbols, the files in the folder of path that match the patterns.
func (f *Finder) openSiblings(path string, patterns []string, needed bool) error {
	if !strings.Contains(path, string(filepath.Separator)) {
		return nil // the loader finds the siblings in the same way
	}
	for _, p := range patterns {
		for _, file := range existing(filepath.Join(filepath.Dir(path), p)) {
			if _, err := f.opener.open(file, true); err != nil && needed {
				return err
			}
		}
	}
	return nil
}
