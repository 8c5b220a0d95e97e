package images

import (
	"fmt"
	"os"
)

// Options say how pictures are found and read.
type Options struct {
	MaxPixels int // a picture of more is refused before it is decoded; 0 means 100 million
	// ImageNet tars: the file that says the classes of the validation pictures; "" looks beside
	// them
	Labels string
}

// defaultMaxPixels is large enough for any photograph.
const defaultMaxPixels = 100e6

func (o Options) filled() Options {
	if o.MaxPixels <= 0 {
		o.MaxPixels = defaultMaxPixels
	}
	return o
}

// Format is a way to store a set of pictures.
type Format struct {
	Name string
	// Recognise looks at a path, without reading much, and says whether it is of this format.
	Recognise func(path string) bool
	Open      func(path string, o Options) (*Set, error)
}

// registered are the formats of [Register].
var registered []Format

// Register adds a format, which is tried before those of this package. It is called while a program
// starts.
func Register(f Format) { registered = append(registered, f) }

// Open finds out what path holds and lists its pictures. A path may name several files:
// shard-{000..147}.tar, or a pattern with * or ?. A path that does not exist is an error that
// [os.ErrNotExist] is; content that is not understood is a [FormatError].
func Open(path string, o Options) (*Set, error) {
	o = o.filled()
	if isPattern(path) {
		return openShards(path, o)
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("images: %w", err)
	}
	for _, f := range registered {
		if f.Recognise(path) {
			return f.Open(path, o)
		}
	}
	switch {
	case isImageNet(path):
		return openImageNet(path, o)
	case info.IsDir():
		return openFolders(path, o)
	}
	return openArchive(path, o)
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
