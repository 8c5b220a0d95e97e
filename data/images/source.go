package images

// Source is an immutable list of labelled images. It is safe for concurrent use.
type Source interface {
	// Len is the number of pictures.
	Len() int
	// Label is the class of image i, counted from 0.
	Label(i int) int32
	// Name is the origin of image i: a path below the root, or a member of an archive. It is "" if
	// the image has none.
	Name(i int) string
	// Bytes is the stored size of image i, or -1 if that is unknown without reading the image.
	Bytes(i int) int64
	// Image decodes image i into dst and reuses its memory if it is large enough. An error names
	// the image.
	Image(dst *RGB, i int) error
}

// RGB is a decoded image: H rows of W pixels of three bytes, red, green, blue, without padding.
type RGB struct {
	W, H int
	Pix  []uint8
}

// Resize makes p an image of w×h with undefined pixels, and reuses its memory if it is large
// enough.
func (p *RGB) Resize(w, h int) {
	p.W, p.H = w, h
	if n := 3 * w * h; cap(p.Pix) < n {
		p.Pix = make([]uint8, n)
	} else {
		p.Pix = p.Pix[:n]
	}
}

// Encoded is a Source that can return its images as stored.
type Encoded interface {
	Source
	// Encoded returns the file of image i, in the memory of dst if that is large enough. An error
	// names the image.
	Encoded(dst []byte, i int) ([]byte, error)
}

// Raw is a Source of decoded images.
type Raw interface {
	Source
	// Pixels returns the pixels of image i as in [RGB], without a copy. They are read-only and
	// valid until the source is closed.
	Pixels(i int) (pix []uint8, w, h int)
}
