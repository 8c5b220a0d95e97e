package images

// Source is a list of labelled pictures. It is safe for concurrent use and does not change.
type Source interface {
	// Len is the number of pictures.
	Len() int
	// Label is the class of picture i, counted from 0.
	Label(i int) int32
	// Image decodes picture i into dst, whose memory it reuses where that is large enough. An error
	// names the picture.
	Image(dst *RGB, i int) error
}

// RGB is a decoded picture: H rows of W pixels of three bytes, red, green, blue, without padding.
type RGB struct {
	W, H int
	Pix  []uint8
}

// Resize makes p a picture of w×h whose pixels are unspecified, in the memory it has where that is
// large enough.
func (p *RGB) Resize(w, h int) {
	p.W, p.H = w, h
	if n := 3 * w * h; cap(p.Pix) < n {
		p.Pix = make([]uint8, n)
	} else {
		p.Pix = p.Pix[:n]
	}
}

// Encoded is a Source that can hand out its pictures as they are stored.
type Encoded interface {
	Source
	// Encoded returns the JPEG or PNG file of picture i, in the memory of dst where that is large
	// enough. An error names the picture.
	Encoded(dst []byte, i int) ([]byte, error)
}

// Raw is a Source that holds decoded pictures.
type Raw interface {
	Source
	// Pixels returns picture i as an [RGB] holds it, without a copy. It is only read, and not after
	// the source is closed.
	Pixels(i int) (pix []uint8, w, h int)
}

// Named is a Source that knows where its pictures came from.
type Named interface {
	Source
	// Name says where picture i is, as a person would look for it: a path below the root, or a
	// member of an archive.
	Name(i int) string
}

// Weighed is a Source that knows the sizes of its files.
type Weighed interface {
	Source
	// Bytes is the size of picture i where it is stored, or 0 where that is not known without
	// reading.
	Bytes(i int) int64
}
