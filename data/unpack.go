package data

import (
	"fmt"
	"image"

	"fspda/data/images"
)

// unpacked are decoded images in memory.
type unpacked struct {
	labels []int32
	images []images.RGB
}

var _ images.Raw = (*unpacked)(nil)

func (u *unpacked) Len() int          { return len(u.labels) }
func (u *unpacked) Label(i int) int32 { return u.labels[i] }
func (u *unpacked) Name(int) string   { return "" }
func (u *unpacked) Bytes(int) int64   { return -1 }

func (u *unpacked) Pixels(i int) (pix []uint8, w, h int) {
	p := &u.images[i]
	return p.Pix, p.W, p.H
}

func (u *unpacked) Image(dst *images.RGB, i int) error {
	pix, w, h := u.Pixels(i)
	dst.Resize(w, h)
	copy(dst.Pix, pix)
	return nil
}

// Packed reports whether the examples are images that their source stores decoded.
func (s Split) Packed() bool {
	if s.images == nil {
		return false
	}
	return s.images.raw() != nil
}

// Unpack decodes up to n training images of a set into memory, each scaled to a shorter side of
// short pixels, as in a packed set, and returns a set of them with the given options. It is for
// measurements and small sets: an image of 256×341 pixels takes 262 KB.
func (s *Set) Unpack(n, short int, o ImageOptions) (*Set, error) {
	p := s.Train.images
	if p == nil || n < 1 || short < 1 {
		return nil, fmt.Errorf("data: set %s: %d images of short side %d cannot be unpacked, want at least 1 and "+
			"1 of a set of images", s.Name, n, short)
	}
	n = min(n, s.Train.Len())
	u := &unpacked{labels: s.Train.Labels[:n], images: make([]images.RGB, n)}
	err := parallel(cap(p.pool), n, func(i int) error {
		buf := <-p.pool
		defer func() { p.pool <- buf }()
		if err := p.source.Image(&buf.whole, i); err != nil {
			return err
		}
		u.images[i] = scaledTo(&buf.scale, &buf.whole, short)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("data: set %s: %w", s.Name, err)
	}
	return FromImages(s.Name, s.Classes, u, u, o)
}

// scaledTo returns an image scaled to a shorter side of short pixels.
func scaledTo(r *resampler, p *images.RGB, short int) images.RGB {
	across, down := centreCrop(p.W, p.H, short, short)
	across.first, down.first = 0, 0
	out := images.RGB{W: across.out, H: down.out, Pix: make([]uint8, 3*across.out*down.out)}
	r.set(out.W, out.H, across, down)
	r.run(out.Pix, p.Pix, 3*p.W, image.Point{})
	return out
}
