package packed

import (
	"slices"

	"github.com/edsrzf/mmap-go"

	"fspda/data/images"
)

// Pictures is a split of a packed set. It is an [images.Source] in both formats, and safe for
// concurrent use.
type Pictures struct {
	dir       string
	maxPixels int
	mappings  []mmap.MMap
	batches   []batch
	starts    []int // first image of each batch
	n         int
}

// RawPictures is a split in format raw.
type RawPictures struct{ *Pictures }

// EncodedPictures is a split in format jpeg.
type EncodedPictures struct{ *Pictures }

var (
	_ images.Raw     = RawPictures{}
	_ images.Encoded = EncodedPictures{}
)

// source returns p with the methods of its format.
func (p *Pictures) source(format string) images.Source {
	if format == Raw {
		return RawPictures{p}
	}
	return EncodedPictures{p}
}

func (p *Pictures) at(i int) (batch, int) {
	k, exact := slices.BinarySearch(p.starts, i)
	if !exact {
		k--
	}
	return p.batches[k], i - p.starts[k]
}

func (p *Pictures) Len() int { return p.n }

func (p *Pictures) Label(i int) int32 {
	b, k := p.at(i)
	return b.label(k)
}

func (p *Pictures) Name(i int) string {
	b, k := p.at(i)
	return b.name(k)
}

func (p *Pictures) Bytes(i int) int64 {
	b, k := p.at(i)
	return int64(len(b.content(k)))
}

func (p *Pictures) Size(i int) (w, h int) {
	b, k := p.at(i)
	return b.size(k)
}

// Close ends the mapping. Images returned without a copy must not be used afterwards.
func (p *Pictures) Close() error {
	var first error
	for i := range p.mappings {
		if err := p.mappings[i].Unmap(); err != nil && first == nil {
			first = err
		}
	}
	p.mappings, p.batches, p.starts, p.n = nil, nil, nil, 0
	return first
}

// Pixels returns image i in the mapped memory.
func (p RawPictures) Pixels(i int) (pix []uint8, w, h int) {
	b, k := p.at(i)
	w, h = b.size(k)
	return b.content(k), w, h
}

// Image copies picture i.
func (p RawPictures) Image(dst *images.RGB, i int) error {
	pix, w, h := p.Pixels(i)
	dst.Resize(w, h)
	copy(dst.Pix, pix)
	return nil
}

// Encoded copies the JPEG file of picture i.
func (p EncodedPictures) Encoded(dst []byte, i int) ([]byte, error) {
	b, k := p.at(i)
	return append(dst[:0], b.content(k)...), nil
}

func (p EncodedPictures) Image(dst *images.RGB, i int) error {
	b, k := p.at(i)
	if err := images.Decode(dst, b.content(k), p.maxPixels); err != nil {
		return &images.PictureError{Path: p.dir, Name: b.name(k), Err: err}
	}
	return nil
}
