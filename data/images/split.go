package images

import (
	"fmt"
	"sync"
)

// location is the position of an image's bytes: in an open file, or (file < 0) in a file whose path
// is the image's name.
type location struct {
	file   int32
	offset int64
	size   int64
}

// picture is an entry of the index.
type picture struct {
	name  string // unique in its split
	class string
	label int32
	at    location
}

// store reads the bytes of images. It is safe for concurrent use.
type store interface {
	read(dst []byte, p *picture) ([]byte, error)
}

// split is a Source over an index of encoded images.
type split struct {
	path      string // path of the set, for errors
	pictures  []picture
	store     store
	maxPixels int
}

var _ Encoded = (*split)(nil)

func (s *split) Len() int          { return len(s.pictures) }
func (s *split) Label(i int) int32 { return s.pictures[i].label }
func (s *split) Name(i int) string { return s.pictures[i].name }
func (s *split) Bytes(i int) int64 { return s.pictures[i].at.size }

// maxEncoded limits the size of an image file in bytes. The largest JPEG of ImageNet has 15 MB.
const maxEncoded = 512 << 20

func (s *split) Encoded(dst []byte, i int) ([]byte, error) {
	p := &s.pictures[i]
	var err error
	if p.at.size > maxEncoded {
		err = fmt.Errorf("a file of %d bytes, want at most %d", p.at.size, maxEncoded)
	} else {
		dst, err = s.store.read(dst, p)
	}
	if err != nil {
		return nil, &PictureError{Path: s.path, Name: p.name, Err: err}
	}
	return dst, nil
}

// buffers pools memory for encoded images.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

func (s *split) Image(dst *RGB, i int) error {
	b := buffers.Get().(*[]byte)
	defer buffers.Put(b)
	encoded, err := s.Encoded((*b)[:0], i)
	if err != nil {
		return err
	}
	*b = encoded
	if err := Decode(dst, encoded, s.maxPixels); err != nil {
		return &PictureError{Path: s.path, Name: s.pictures[i].name, Err: err}
	}
	return nil
}

// grow returns a slice of n bytes in the memory of b if that is large enough.
func grow(b []byte, n int) []byte {
	if cap(b) < n {
		return make([]byte, n, n+n/4)
	}
	return b[:n]
}
