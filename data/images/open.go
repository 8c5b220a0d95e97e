package images

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Options configures how images are found and read.
type Options struct {
	MaxPixels int // larger images are rejected before decoding; 0 means 100 million
	// ImageNet tars: the file with the classes of the validation images; "" searches the same
	// folder
	Labels string
	// tables: the columns of the pictures and of their labels; "" searches usual names
	ImageColumn, LabelColumn string
}

// defaultMaxPixels admits any photograph.
const defaultMaxPixels = 100e6

func (o Options) filled() Options {
	if o.MaxPixels <= 0 {
		o.MaxPixels = defaultMaxPixels
	}
	return o
}

// Format is a storage format for a set of images.
type Format struct {
	Name    string
	Columns bool // it has columns that Options can name
	// Recognise reports whether a path is of this format, without reading much.
	Recognise func(path string) bool
	Open      func(path string, o Options) (*Set, error)
}

var registered []Format

// Register adds a format, which is tried before the built-in ones. Call it only during
// initialization.
func Register(f Format) { registered = append(registered, f) }

// Open detects the format of path and lists its images. A path may name several files:
// shard-{000..147}.tar, or a pattern with * or ?. A path that does not exist is an error that wraps
// [os.ErrNotExist]; unknown content is a [FormatError].
func Open(path string, o Options) (*Set, error) {
	o = o.filled()
	if isPattern(path) {
		return openShards(path, o)
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("images: %w: name a folder, an archive, shards or tables of pictures", err)
	}
	for _, f := range registered {
		if f.Recognise(path) {
			return f.open(path, o)
		}
	}
	switch {
	case isImageNet(path):
		if err := o.refuseColumns(path); err != nil {
			return nil, err
		}
		return openImageNet(path, o)
	case info.IsDir():
		return openFolder(path, o)
	}
	return openArchives(path, []string{path}, o)
}

// openFolder opens a folder of pictures, or of archives.
func openFolder(path string, o Options) (*Set, error) {
	t, err := folderTree(path)
	if err != nil {
		return nil, err
	}
	if t.pictures() == 0 {
		for _, pattern := range []string{"*.tar", "*.zip"} {
			pattern = filepath.Join(escapePattern(path), pattern)
			if files, _ := filepath.Glob(pattern); len(files) > 0 { // the pattern is well-formed
				if missing := MissingShard(files); missing != "" {
					return nil, &FormatError{Path: missing, Got: "no such shard", Want: "all shards of the set",
						Hint: "fetch it, or name the shards to read by a pattern"}
				}
				return openShards(filepath.Join(path, filepath.Base(pattern)), o)
			}
		}
	}
	return t.set(o)
}

// openArchives opens tars and zips: of class folders, of labels beside pictures, or ImageNet's tar of
// tars. Path names them in messages.
func openArchives(path string, files []string, o Options) (*Set, error) {
	t, err := archiveTree(path, files)
	if err != nil {
		return nil, err
	}
	if t.pictures() == 0 && len(files) == 1 && slices.ContainsFunc(t.entries, func(e entry) bool {
		return strings.HasSuffix(e.name, ".tar")
	}) {
		_ = t.archives.Close() // reopened together with the validation images
		return openImageNet(path, o)
	}
	s, err := t.set(o)
	if err != nil {
		_ = t.archives.Close() // return the first error
		return nil, err
	}
	s.OnClose(t.archives)
	return s, nil
}

// open opens a path in the format.
func (f *Format) open(path string, o Options) (*Set, error) {
	if !f.Columns {
		if err := o.refuseColumns(path); err != nil {
			return nil, err
		}
	}
	return f.Open(path, o)
}

// refuseColumns refuses columns for a path that has none.
func (o Options) refuseColumns(path string) error {
	if o.ImageColumn == "" && o.LabelColumn == "" {
		return nil
	}
	return &FormatError{Path: path, Got: "names of columns for pictures that are not in a table",
		Want: "Parquet or Arrow tables", Hint: "leave out --image-column and --label-column"}
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
