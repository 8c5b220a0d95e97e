package images

// Source is a list of labelled pictures. It is safe for concurrent use and does not change.
type Source interface {
	// Len is the number of pictures.
	Len() int
	// Label is the class of picture i, counted from 0.
	Label(i int) int32
	// Image decodes picture i into dst, whose memory it reuses where that is large enough. An error names the picture.
	Image(dst *RGB, i int) error
}

// RGB is a decoded picture: H rows of W pixels of three bytes, red, green, blue, without padding.
type RGB struct {
	W, H int
	Pix  []uint8
}
