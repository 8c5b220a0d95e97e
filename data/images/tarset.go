package images

import (
	"os"
	"strings"
)

// peekMembers is the number of members that are read to detect the format of a tar.
const peekMembers = 256

// openArchive opens a single file: a tar of class folders, of tars, or a shard of WebDataset.
func openArchive(path string, o Options) (*Set, error) {
	a, err := openArchives([]string{path})
	if err != nil {
		return nil, err
	}
	kind, err := peek(a)
	if err == nil && kind == kindTars {
		_ = a.Close() // reopened together with the validation images
		return openImageNet(path, o)
	}
	var s *Set
	switch {
	case err != nil:
	case kind == kindWebDataset:
		s, err = webDataset(path, a, o)
	default:
		s, err = tarOfFolders(path, a, o)
	}
	if err != nil {
		_ = a.Close() // return the first error
		return nil, err
	}
	s.OnClose(a)
	return s, nil
}

const (
	kindFolders    = "tar of class folders"
	kindTars       = "ImageNet tars"
	kindWebDataset = "WebDataset"
)

// peek detects the format of a tar from its first members.
func peek(a *archives) (kind string, err error) {
	kind, n := kindFolders, 0
	pictures, labels := map[string]bool{}, map[string]bool{} // both are indexed by key
	err = a.scan(0, func(_ *os.File, m member) error {
		key, ext := splitKey(m.name)
		switch {
		case m.dir || isHidden(m.name):
		case strings.HasSuffix(ext, "tar"):
			kind = kindTars
		case ext == "cls":
			kind = kindWebDataset
		case ext == "json":
			labels[key] = true
		case isPicture(m.name):
			pictures[key] = true
		}
		if pictures[key] && labels[key] {
			kind = kindWebDataset
		}
		if n++; n == peekMembers || kind != kindFolders {
			return errEnough
		}
		return nil
	})
	return kind, err
}

// tarOfFolders lists the images of a tar by the folders in their names.
func tarOfFolders(path string, a *archives, o Options) (*Set, error) {
	l := newListing(path, kindFolders)
	tests := map[string]bool{}
	byFolder := map[string]*found{}
	err := a.scan(0, func(_ *os.File, m member) error {
		split, folder, class, inside := splitOfMember(m.name)
		if isHidden(m.name) || class == "" || !m.dir && !inside {
			return nil
		}
		f := byFolder[folder]
		if f == nil {
			f = &found{classes: map[string]int{}, folder: folder}
			byFolder[folder] = f
			if split == testSplit {
				tests[folder] = true
			}
		}
		switch {
		case m.dir:
			f.classes[class] += 0
		case isPicture(m.name):
			f.add(picture{name: m.name, class: class, at: location{offset: m.offset, size: m.size}})
		default:
			l.skip(m.name)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	l.assign(byFolder, tests)
	return l.set(a, o)
}

// assign selects the folders for training and for testing.
func (l *listing) assign(byFolder map[string]*found, tests map[string]bool) {
	test := ""
	for folder := range tests {
		if test == "" || preferred(folder, test) == folder {
			test = folder
		}
	}
	if len(tests) > 1 {
		l.notes = append(l.notes, "of several test folders, "+test+" is taken")
	}
	named := false
	for folder, f := range byFolder {
		switch {
		case tests[folder]:
			if folder == test {
				l.found[testSplit] = f
			}
		case folder != "":
			l.found[trainSplit], named = f, true
		}
	}
	if rest := byFolder[""]; rest != nil && !named && test == "" {
		rest.folder = "the archive"
		l.found[trainSplit] = rest
	}
}

// splitOfMember parses [...]/SPLIT/CLASS/[...]NAME, or CLASS/NAME if no folder is called train, val
// or test; then folder is "". inside reports whether something follows the class; a name without a
// class has class "".
func splitOfMember(name string) (split, folder, class string, inside bool) {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		if s, ok := splitNames[p]; ok {
			if len(parts) <= i+1 {
				return s, p, "", false
			}
			return s, p, parts[i+1], len(parts) > i+2
		}
	}
	if len(parts) < 2 {
		return trainSplit, "", "", false
	}
	return trainSplit, "", parts[len(parts)-2], true
}
