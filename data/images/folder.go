package images

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// maxDepth limits the depth of folders below a class, so that cyclic links end.
const maxDepth = 8

// openFolders lists class folders: below train and val or test, or, without such folders, in
// path itself.
func openFolders(path string, o Options) (*Set, error) {
	l := newListing(path, "class folders")
	if err := l.folders(path); err != nil {
		return nil, err
	}
	if shards := len(l.found) == 0 && hasShards(path); shards {
		return openShards(filepath.Join(path, "*.tar"), o)
	}
	return l.set(folderStore(path), o)
}

func (l *listing) folders(root string) error {
	entries, err := os.ReadDir(root)
	if err != nil {
		return fmt.Errorf("images: %w", err)
	}
	splits := map[string]string{}
	for _, e := range entries {
		to, ok := splitNames[e.Name()]
		if !ok || !isDir(filepath.Join(root, e.Name())) || !hasFolders(filepath.Join(root, e.Name())) {
			continue
		}
		if other, twice := splits[to]; twice {
			splits[to] = preferred(e.Name(), other)
			l.notes = append(l.notes, fmt.Sprintf("of %s and %s, %s is taken", other, e.Name(), splits[to]))
		} else {
			splits[to] = e.Name()
		}
	}
	if len(splits) == 0 {
		return l.classes(root, "", trainSplit)
	}
	for to, folder := range splits {
		if err := l.classes(root, folder, to); err != nil {
			return err
		}
	}
	return nil
}

// classes lists the class folders in root/folder.
func (l *listing) classes(root, folder, split string) error {
	entries, err := os.ReadDir(filepath.Join(root, folder))
	if err != nil {
		return fmt.Errorf("images: %w", err)
	}
	for _, e := range entries {
		rel := filepath.Join(folder, e.Name())
		if isHidden(e.Name()) || !isDir(filepath.Join(root, rel)) {
			continue
		}
		f := l.split(split, cmp.Or(folder, "the folder"))
		f.classes[e.Name()] += 0
		if err := l.class(f, root, rel, e.Name(), maxDepth); err != nil {
			return err
		}
	}
	return nil
}

// class lists the images in root/rel and below.
func (l *listing) class(f *found, root, rel, class string, depth int) error {
	if depth == 0 {
		return &FormatError{Path: filepath.Join(root, rel), Got: fmt.Sprintf("folders %d deep", maxDepth),
			Want: "pictures in a class folder", Hint: "a link may lead in a circle"}
	}
	entries, err := os.ReadDir(filepath.Join(root, rel))
	if err != nil {
		return fmt.Errorf("images: %w", err)
	}
	for _, e := range entries {
		name := filepath.Join(rel, e.Name())
		switch {
		case isHidden(e.Name()):
		case e.IsDir() || e.Type()&os.ModeSymlink != 0 && isDir(filepath.Join(root, name)):
			if err := l.class(f, root, name, class, depth-1); err != nil {
				return err
			}
		case isPicture(e.Name()):
			f.add(picture{name: filepath.ToSlash(name), class: class, at: location{file: -1}})
		default:
			l.skip(e.Name())
		}
	}
	return nil
}

// hasFolders reports whether a folder contains folders (classes) instead of files.
func hasFolders(dir string) bool {
	d, err := os.Open(dir)
	if err != nil {
		return false
	}
	defer d.Close()
	for {
		entries, err := d.ReadDir(256)
		for _, e := range entries {
			if !isHidden(e.Name()) && (e.IsDir() || e.Type()&os.ModeSymlink != 0 &&
				isDir(filepath.Join(dir, e.Name()))) {
				return true
			}
		}
		if err != nil {
			return false
		}
	}
}

// folderStore reads files below the folder with that path.
type folderStore string

func (s folderStore) read(dst []byte, p *picture) ([]byte, error) {
	path := filepath.Join(string(s), filepath.FromSlash(p.name))
	f, err := os.Open(path)
	if target, e := os.Readlink(path); e == nil && errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("a link to %s, which does not exist", target)
	}
	if err != nil {
		return nil, cause(err)
	}
	defer f.Close() // read only: an error loses no data
	info, err := f.Stat()
	if err != nil {
		return nil, cause(err)
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	if info.Size() > maxEncoded {
		return nil, fmt.Errorf("a file of %d bytes, want at most %d", info.Size(), maxEncoded)
	}
	dst = grow(dst, int(info.Size()))
	if _, err := io.ReadFull(f, dst); err != nil {
		return nil, fmt.Errorf("the file ended while it was read: %w", cause(err))
	}
	return dst, nil
}

// cause removes the path from a file error, since the message names the image already.
func cause(err error) error {
	if p, ok := errors.AsType[*os.PathError](err); ok {
		return p.Err
	}
	return err
}

func hasShards(dir string) bool {
	// the pattern is well-formed
	names, _ := filepath.Glob(filepath.Join(escapePattern(dir), "*.tar"))
	return len(names) > 0
}

// escapePattern returns a pattern that matches only the path.
func escapePattern(path string) string {
	return strings.NewReplacer(`*`, `[*]`, `?`, `[?]`, `[`, `[[]`).Replace(path)
}
