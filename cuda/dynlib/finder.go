package dynlib

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// PathVariable is the environment variable with folders, separated as in PATH, that are searched
// before all others.
const PathVariable = "FSPDA_CUDA_PATH"

// Finder knows where libraries may lie. Make one with [System].
type Finder struct {
	Env     func(string) string // reads the environment
	Program string              // path of the running program
	Root    string              // of the file system: "/"

	opener opener
}

// place is a folder, and why it is searched.
type place struct {
	folder string
	why    string
	wheels bool // it is a site-packages: libraries lie in folders of theirs below
}

// sitePackages is where an environment of Python keeps packages.
const sitePackages = "lib/python3*/site-packages"

func (p place) same(q place) bool { return p.folder == q.folder && p.wheels == q.wheels }

// opener is the part that meets the system.
type opener interface {
	open(path string, global bool) (uintptr, error)
	symbol(handle uintptr, name string) (uintptr, error)
	close(handle uintptr) error
}

// System returns the Finder of this machine.
func System() *Finder {
	program, err := os.Executable()
	if err != nil {
		program = ""
	}
	return &Finder{Env: os.Getenv, Program: program, Root: "/", opener: system{}}
}

// Nowhere returns a Finder that finds nothing: a machine without NVIDIA's libraries.
func Nowhere() *Finder {
	return &Finder{Env: func(string) string { return "" }, Root: "/nowhere", opener: nothing{}}
}

// nothing opens no file.
type nothing struct{}

func (nothing) open(string, bool) (uintptr, error) { return 0, errors.New("no such file") }

func (nothing) symbol(uintptr, string) (uintptr, error) { return 0, errors.New("no such function") }

func (nothing) close(uintptr) error { return nil }

// places lists the folders in the order of search.
func (f *Finder) places() []place {
	var all []place
	add := func(why string, wheels bool, patterns ...string) {
		for _, p := range patterns {
			for _, folder := range existing(p) {
				if p := (place{folder, why, wheels}); !slices.ContainsFunc(all, p.same) {
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
		add("beside the program", false, dir, filepath.Join(dir, "lib"))
	}
	f.addPython(add)
	f.addToolkits(add)
	return all
}

// addPython adds the site-packages of the environment that is active, of the python3 that PATH
// leads to, of the user, and of the system.
func (f *Finder) addPython(add func(why string, wheels bool, patterns ...string)) {
	for _, v := range []string{"VIRTUAL_ENV", "CONDA_PREFIX"} {
		if dir := f.Env(v); dir != "" {
			add("Python packages ("+v+")", true, filepath.Join(dir, sitePackages))
			add("Python packages ("+v+")", false, filepath.Join(dir, "lib"))
		}
	}
	for _, dir := range filepath.SplitList(f.Env("PATH")) {
		// not resolved: an environment's is a link
		if found := existing(filepath.Join(dir, "python3")); dir != "" && found != nil {
			add("Python packages (of "+found[0]+")", true, filepath.Join(filepath.Dir(dir), sitePackages))
		}
	}
	if home := f.Env("HOME"); home != "" {
		add("Python packages (of the user)", true, filepath.Join(home, ".local", sitePackages))
	}
	add("Python packages (of the system)", true, filepath.Join(f.Root, "usr/local/lib/python3*/dist-packages"),
		filepath.Join(f.Root, "usr/local/lib/python3*/site-packages"), filepath.Join(f.Root,
			"usr/lib/python3*/site-packages"),
		filepath.Join(f.Root, "usr/lib/python3/dist-packages"))
}

// addToolkits adds CUDA toolkits: those that variables name, the default one, and others from the
// newest to the oldest.
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

// existing are the files and folders that a pattern matches, in order.
func existing(pattern string) []string {
	found, err := filepath.Glob(pattern)
	if err != nil { // a folder with a bracket in its name
		return nil
	}
	return found
}

// candidate is a file that may be the library.
type candidate struct{ path, why string }

// candidates are the files of l in the order of search. The names that the system's loader may know
// come after those, and the last resorts at the end.
func (f *Finder) candidates(l *Library) []candidate {
	var found []candidate
	usual := func(paths []string) {
		for _, path := range paths {
			if path = filepath.Join(f.Root, path); isFile(path) {
				found = append(found, candidate{path, "the usual place"})
			}
		}
	}
	usual(l.Extra)
	for _, p := range f.places() {
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
	usual(l.Last)
	return found
}

// folders are those of a place where l may lie.
func (p place) folders(l *Library) []string {
	if !p.wheels {
		return []string{p.folder}
	}
	var all []string
	for _, w := range l.Wheel {
		all = append(all, filepath.Join(p.folder, filepath.FromSlash(w)))
	}
	return all
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// Open opens the first file of l that opens and is accepted. The error is an *Error.
func (f *Finder) Open(l *Library) (*Handle, error) {
	fail := &Error{Library: l.Name, Hint: l.Hint}
	for _, c := range f.candidates(l) {
		h, err := f.try(l, c)
		if err == nil {
			return h, nil
		}
		if !strings.Contains(c.path, string(filepath.Separator)) && len(fail.Attempts) > 0 {
			continue // a name that the loader does not know says little where files were found
		}
		fail.Attempts = append(fail.Attempts, Attempt{c.path, err.Error()})
	}
	for _, p := range f.places() {
		fail.Places = append(fail.Places, p.folder)
	}
	return nil, fail
}

// try opens one file, with what is to be opened before and after.
func (f *Finder) try(l *Library, c candidate) (*Handle, error) {
	if l.Refuse != nil && strings.Contains(c.path, string(filepath.Separator)) {
		if err := l.Refuse(c.path); err != nil {
			return nil, err
		}
	}
	if err := f.openBeside(c.path, l.First); err != nil {
		return nil, err
	}
	handle, err := f.opener.open(c.path, len(l.Then) > 0)
	if err != nil {
		return nil, err
	}
	h := &Handle{Library: l, Path: c.path, Place: c.why, handle: handle, opener: f.opener}
	if l.Accept != nil {
		if err := l.Accept(h); err != nil {
			_ = f.opener.close(handle) // it is not used, whether that works or not
			return nil, err
		}
	}
	if err := f.openBeside(c.path, l.Then); err != nil {
		return nil, err
	}
	return h, nil
}

// openBeside opens, for all to see, the files in the folder of path that match.
func (f *Finder) openBeside(path string, patterns []string) error {
	if !strings.Contains(path, string(filepath.Separator)) {
		return nil // the loader knows where; then it also finds what lies beside
	}
	for _, p := range patterns {
		for _, file := range existing(filepath.Join(filepath.Dir(path), p)) {
			if _, err := f.opener.open(file, true); err != nil {
				return err
			}
		}
	}
	return nil
}
