package images

import (
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
)

const (
	imageNetTrain = "ILSVRC2012_img_train.tar"
	imageNetVal   = "ILSVRC2012_img_val.tar"
)

// isImageNet recognizes a folder with ImageNet's original files.
func isImageNet(path string) bool {
	return isDir(path) && (isFile(filepath.Join(path, imageNetTrain)) || isFile(filepath.Join(path, imageNetVal)))
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// openImageNet opens ImageNet's original files: a folder of them, or the tar of training images
// with the others in the same folder.
func openImageNet(path string, o Options) (*Set, error) {
	dir, train := path, filepath.Join(path, imageNetTrain)
	if !isDir(path) {
		dir, train = filepath.Dir(path), path
	}
	val := filepath.Join(dir, imageNetVal)
	var files []string
	for _, f := range []string{train, val} {
		if isFile(f) {
			files = append(files, f)
		}
	}
	a, err := newArchives(files)
	if err != nil {
		return nil, err
	}
	s, err := imageNet(path, dir, a, train, o)
	if err != nil {
		_ = a.Close() // return the first error
		return nil, err
	}
	s.OnClose(a)
	return s, nil
}

func imageNet(path, dir string, a *archives, train string, o Options) (*Set, error) {
	l := newListing(path, kindTars)
	for i, file := range a.paths {
		var err error
		if file == train {
			err = l.tarOfTars(a, i)
		} else {
			err = l.validation(dir, a, i, o)
		}
		if err != nil {
			return nil, err
		}
	}
	l.layout = "training CLASS.tar of " + imageNetTrain + ", test " + imageNetVal
	return l.set(a, o)
}

// tarOfTars lists the images of a tar that holds CLASS.tar for each class.
func (l *listing) tarOfTars(a *archives, file int) error {
	where := a.paths[file]
	f := l.split(trainSplit, filepath.Base(where))
	return a.scan(file, func(from *os.File, m member) error {
		class, isTar := strings.CutSuffix(filepath.Base(m.name), ".tar")
		if m.dir || m.link != "" || isSystem(path.Base(m.name)) {
			return nil
		}
		if !isTar {
			l.skip(m.name)
			return nil
		}
		f.classes[class] += 0
		return scanTar(where+": "+m.name, io.ReaderAt(from), m.offset, m.size, func(p member) error {
			switch {
			case p.dir || p.link != "" || isSystem(path.Base(p.name)):
			case isPicture(p.name):
				f.add(picture{name: class + "/" + p.name, class: class,
					at: location{file: int32(file), offset: p.offset, size: p.size}})
			default:
				l.skip(p.name)
			}
			return nil
		})
	})
}

// validation lists the images of a flat tar, whose classes are in a separate file.
func (l *listing) validation(dir string, a *archives, file int, o Options) error {
	f := l.split(testSplit, filepath.Base(a.paths[file]))
	var all []picture
	err := a.scan(file, func(_ *os.File, m member) error {
		switch {
		case m.dir || m.link != "" || isSystem(path.Base(m.name)):
		case isPicture(m.name):
			all = append(all, picture{name: m.name, at: location{file: int32(file), offset: m.offset, size: m.size}})
		default:
			l.skip(m.name)
		}
		return nil
	})
	if err != nil {
		return err
	}
	labels, err := findLabels(dir, o.Labels)
	if err != nil {
		return err
	}
	var classes map[string]int
	if train := l.found[trainSplit]; train != nil {
		classes = train.classes
	}
	if err := labelValidation(all, labels, dir, classes); err != nil {
		return err
	}
	for _, p := range all {
		f.add(p)
	}
	l.notes = append(l.notes, fmt.Sprintf("classes of %s: %s", f.folder, labels))
	return nil
}
