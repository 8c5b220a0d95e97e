package web

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"fspda/internal/lockfile"
)

// runTree is a folder of runs, which nothing below it leads out of but symbolic links to runs and
// to folders of runs. Each of those is a folder of its own, out of which no link leads.
type runTree struct {
	*os.Root
	mu     sync.Mutex
	linked map[string]*os.Root // opened folders by the path of their link
}

func openTree(dir string) (*runTree, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("web: open the folder of runs: %w", err)
	}
	return &runTree{Root: root, linked: map[string]*os.Root{}}, nil
}

// at returns the folder in which a path is opened, and the path there.
func (t *runTree) at(name string) (*os.Root, string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for link, root := range t.linked {
		if rest, ok := strings.CutPrefix(name, link+"/"); ok {
			return root, rest
		}
	}
	return t.Root, name
}

// Stat and Open work in the folder in which the path is.
func (t *runTree) Stat(name string) (os.FileInfo, error) {
	root, name := t.at(name)
	return root.Stat(name)
}

func (t *runTree) Open(name string) (*os.File, error) {
	root, name := t.at(name)
	return root.Open(name)
}

func (t *runTree) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, root := range t.linked {
		_ = root.Close()
	}
	return t.Root.Close()
}

// walk calls each for the folders below the tree until it returns an error other than
// [fs.SkipDir], and for those behind links to folders, but for links in there and links to a folder
// that holds the tree. A folder that cannot be read has none below it.
func (t *runTree) walk(each func(folder string) error) {
	old := map[string]*os.Root{}
	t.mu.Lock()
	maps.Copy(old, t.linked)
	t.mu.Unlock()
	var within func(root *os.Root, from string) error
	within = func(root *os.Root, from string) error {
		return fs.WalkDir(root.FS(), ".", func(p string, e fs.DirEntry, err error) error {
			p = path.Join(from, p)
			switch {
			case err != nil:
				return fs.SkipDir
			case e.IsDir():
				return each(p)
			case from != "" || e.Type()&fs.ModeSymlink == 0:
				return nil
			}
			linked := t.follow(p)
			if linked == nil {
				return nil
			}
			delete(old, p)
			if err := within(linked, p); err != nil {
				return fs.SkipAll
			}
			return nil
		})
	}
	_ = within(t.Root, "")
	t.mu.Lock()
	defer t.mu.Unlock()
	for link, root := range old { // is no longer there
		delete(t.linked, link)
		_ = root.Close()
	}
}

// follow opens the folder that a link leads to; nil: it leads to none.
func (t *runTree) follow(link string) *os.Root {
	whole := filepath.Join(t.Name(), filepath.FromSlash(link))
	target, err := filepath.EvalSymlinks(whole)
	own, ownErr := filepath.EvalSymlinks(t.Name())
	if err != nil || ownErr != nil {
		return nil
	}
	if up, err := filepath.Rel(target, own); err == nil && !slices.Contains(strings.Split(up,
		string(filepath.Separator)), "..") {
		return nil // the tree lies in it
	}
	info, err := os.Stat(target)
	if err != nil || !info.IsDir() {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if root := t.linked[link]; root != nil {
		if was, err := root.Stat("."); err == nil && os.SameFile(was, info) {
			return root
		}
		_ = root.Close()
	}
	root, err := os.OpenRoot(target)
	if err != nil {
		delete(t.linked, link)
		return nil
	}
	t.linked[link] = root
	return root
}

// running reports whether a process runs a run, by its lock or the locks of its agents, and whether
// that is known.
func (t *runTree) running(run string) (running, known bool) {
	folder := filepath.Join(t.Name(), filepath.FromSlash(run))
	agents, _ := filepath.Glob(filepath.Join(folder, "agents", "*"))
	known = true
	for _, f := range append(agents, folder) {
		held, tried := lockfile.Held(f)
		if held {
			return true, true
		}
		known = known && tried
	}
	return false, known
}
