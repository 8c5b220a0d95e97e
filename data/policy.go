package data

import (
	"fmt"
	"math"
	"strings"

	"fspda/internal/rng"
)

// policy says how training changes the pixels of a picture after crop and mirror.
type policy struct {
	ops       int // number of operations, one after the other; 0: none
	magnitude int // the bin of every operation's magnitude, if wide is not set
	// wide draws the bin of each operation, from the wide ranges: TrivialAugment.
	wide bool
}

// The defaults of RandAugment, and the number of bins of a magnitude, which are numbered from 0.
const (
	randOps       = 2
	randMagnitude = 9
	bins          = 31
	maxRandOps    = 16
)

// Policies lists the forms of OpenOptions.Policy.
func Policies() []string {
	return []string{"none", "randaugment", "randaugment(OPS,MAGNITUDE)", "trivialaugment"}
}

// parsePolicy reads one of the forms that Policies lists. The empty text is none.
func parsePolicy(text string) (policy, error) {
	switch text {
	case "", "none":
		return policy{}, nil
	case "trivialaugment":
		return policy{ops: 1, wide: true}, nil
	case "randaugment":
		return policy{ops: randOps, magnitude: randMagnitude}, nil
	}
	var p policy
	if n, err := fmt.Sscanf(strings.ReplaceAll(text, " ", ""), "randaugment(%d,%d)", &p.ops, &p.magnitude); n < 2 ||
		err != nil || !strings.HasSuffix(text, ")") {
		return p, fmt.Errorf("%q is not known, want %s", text, strings.Join(Policies(), ", "))
	}
	if p.ops < 1 || p.ops > maxRandOps || p.magnitude < 0 || p.magnitude >= bins {
		return p, fmt.Errorf("%q has %d operations of magnitude %d, want 1 to %d operations of magnitude 0 to %d", text,
			p.ops, p.magnitude, maxRandOps, bins-1)
	}
	return p, nil
}

// CheckPolicy returns an error unless text is one of the forms that Policies lists.
func CheckPolicy(text string) error {
	_, err := parsePolicy(text)
	return err
}

// setPolicy sets the changes of the pixels of training pictures.
func (s *Set) setPolicy(text string) error {
	p, err := parsePolicy(text)
	if channels := s.Train.shape[2]; err == nil && p.ops > 0 && (len(s.Shape) < 2 || channels != 1 && channels != 3) {
		err = fmt.Errorf("%s of examples of shape %v, want grey or RGB pictures", text, s.Shape)
	}
	if err != nil {
		return fmt.Errorf("data: set %s: augmentation of pixels: %w", s.Name, err)
	}
	s.Train.policy = p
	return nil
}

// run changes a picture. It draws nothing if the policy has no operations.
func (p policy) run(pix []uint8, shape [3]int, buf *imageScratch, s *rng.Stream) {
	if p.ops == 0 {
		return
	}
	buf.spare = grown(buf.spare, len(pix))
	pic := picture{pix, buf.spare[:len(pix)], shape[0], shape[1], shape[2]}
	for range p.ops {
		op := &operations[s.IntN(len(operations))]
		bin, most := p.magnitude, op.most
		if p.wide {
			most = op.wide
			if most > 0 {
				bin = s.IntN(bins)
			}
		} else if op.side > 0 {
			most *= float64(shape[op.side-1])
		}
		m := magnitudeOf(most, bin)
		if op.signed && s.IntN(2) == 1 {
			m = -m
		}
		op.run(pic, m)
	}
}

// magnitudeOf returns the magnitude of a bin: equal steps from 0 to most.
func magnitudeOf(most float64, bin int) float64 { return most * (float64(bin) / (bins - 1)) }

// picture is a picture in memory, with as much memory to work in.
type picture struct {
	pix, spare           []uint8
	rows, columns, depth int
}

// operation is a change of a picture by a magnitude, of which some change nothing.
type operation struct {
	name string
	// most is the magnitude of the last bin in RandAugment, and wide in TrivialAugment.
	most, wide float64
	signed     bool // the magnitude may be negative
	side       int  // 1: most is a share of the rows; 2: of the columns; 0: of none
	run        func(p picture, m float64)
}

// operations lists the changes of Cubuk et al., RandAugment (2020), and of Müller and Hutter,
// TrivialAugment (2021), in the order and with the magnitudes of torchvision. A random number
// chooses by the place in this list, which therefore must not change.
var operations = []operation{
	{name: "Identity", run: func(picture, float64) {}},
	{name: "ShearX", most: 0.3, wide: 0.99, signed: true, run: func(p picture, m float64) {
		p.move(func(y, x float64) (float64, float64) { return y, x + float64(m*(y+0.5)) })
	}},
	{name: "ShearY", most: 0.3, wide: 0.99, signed: true, run: func(p picture, m float64) {
		p.move(func(y, x float64) (float64, float64) { return y + float64(m*(x+0.5)), x })
	}},
	{name: "TranslateX", most: 150.0 / 331, wide: 32, signed: true, side: 2, run: func(p picture, m float64) {
		p.move(func(y, x float64) (float64, float64) { return y, x - math.Trunc(m) })
	}},
	{name: "TranslateY", most: 150.0 / 331, wide: 32, signed: true, side: 1, run: func(p picture, m float64) {
		p.move(func(y, x float64) (float64, float64) { return y - math.Trunc(m), x })
	}},
	{name: "Rotate", most: 30, wide: 135, signed: true, run: picture.rotate},
	{name: "Brightness", most: 0.9, wide: 0.99, signed: true, run: func(p picture, m float64) {
		clear(p.spare)
		p.blend(1 + m)
	}},
	{name: "Color", most: 0.9, wide: 0.99, signed: true, run: picture.saturate},
	{name: "Contrast", most: 0.9, wide: 0.99, signed: true, run: picture.contrast},
	{name: "Sharpness", most: 0.9, wide: 0.99, signed: true, run: picture.sharpen},
	{name: "Posterize", most: 4, wide: 6, run: func(p picture, m float64) {
		mask := uint8(0xff) << int(math.RoundToEven(m))
		p.replace(func(v uint8) uint8 { return v & mask })
	}},
	{name: "Solarize", most: 255, wide: 255, run: func(p picture, m float64) {
		p.replace(func(v uint8) uint8 {
			if float64(v) >= 255-m {
				return 255 - v
			}
			return v
		})
	}},
	{name: "AutoContrast", run: func(p picture, _ float64) { p.autoContrast() }},
	{name: "Equalize", run: func(p picture, _ float64) { p.equalize() }},
}

// move takes the pixel of each place from the one nearest to the place that of returns. The middles
// of pixels are numbered from 0, and there is black outside of the picture.
func (p picture) move(of func(y, x float64) (fromY, fromX float64)) {
	copy(p.spare, p.pix)
	for y := range p.rows {
		for x := range p.columns {
			fromY, fromX := of(float64(y), float64(x))
			to := p.pix[(y*p.columns+x)*p.depth:][:p.depth]
			v, u := nearest(fromY), nearest(fromX)
			if v < 0 || v >= p.rows || u < 0 || u >= p.columns {
				clear(to)
				continue
			}
			copy(to, p.spare[(v*p.columns+u)*p.depth:])
		}
	}
}

// nearest returns the nearest whole number. Halves, within the error of their rounding, go to the
// even one.
func nearest(v float64) int {
	low := math.Floor(v)
	if part := v - low; math.Abs(part-0.5) < 1e-9 {
		v = low + 0.5
	}
	return int(math.RoundToEven(v))
}

// rotate turns the picture about its middle, counter-clockwise by an angle in degrees.
func (p picture) rotate(degrees float64) {
	sin, cos := math.Sincos(degrees * (math.Pi / 180))
	midY, midX := float64(p.rows-1)/2, float64(p.columns-1)/2
	p.move(func(y, x float64) (float64, float64) {
		dy, dx := y-midY, x-midX
		return float64(sin*dx) + float64(cos*dy) + midY, float64(cos*dx) - float64(sin*dy) + midX
	})
}

// cut is a number as a byte: cut off, not rounded.
func cut(v float32) uint8 { return uint8(max(0, min(255, v))) }

// mixedBytes is a·v + b·w, with each product rounded.
func mixedBytes(a float32, v uint8, b, w float32) uint8 {
	return cut(float32(a*float32(v)) + float32(b*w))
}

// blend makes the picture a times itself plus 1-a times the one in spare.
func (p picture) blend(a float64) {
	first, second := float32(a), float32(1-a)
	for i, v := range p.pix {
		p.pix[i] = mixedBytes(first, v, second, float32(p.spare[i]))
	}
}

// grey returns the luminance of pixel i as a byte.
func (p picture) grey(i int) uint8 {
	if p.depth != 3 {
		return p.pix[i*p.depth]
	}
	v := p.pix[3*i:][:3]
	return uint8(float32(float32(0.2989*float32(v[0]))+float32(0.587*float32(v[1]))) + float32(0.114*float32(v[2])))
}

// saturate moves the colours away from grey, or towards it.
func (p picture) saturate(m float64) {
	if p.depth != 3 {
		return
	}
	for i := range p.rows * p.columns {
		p.spare[3*i] = p.grey(i)
		p.spare[3*i+1], p.spare[3*i+2] = p.spare[3*i], p.spare[3*i]
	}
	p.blend(1 + m)
}

// contrast moves the values away from the mean luminance, or towards it.
func (p picture) contrast(m float64) {
	sum, n := 0, p.rows*p.columns
	for i := range n {
		sum += int(p.grey(i))
	}
	mean, first, second := float32(sum)/float32(n), float32(1+m), float32(1-(1+m))
	p.replace(func(v uint8) uint8 { return mixedBytes(first, v, second, mean) })
}

// sharpen moves the values away from a mean of neighbours, or towards it. Borders stay.
func (p picture) sharpen(m float64) {
	if p.rows <= 2 || p.columns <= 2 {
		return
	}
	copy(p.spare, p.pix)
	row := p.columns * p.depth
	for y := 1; y < p.rows-1; y++ {
		for i := y*row + p.depth; i < (y+1)*row-p.depth; i++ {
			sum := 4 * int(p.pix[i])
			for _, at := range [3]int{i - row, i, i + row} {
				sum += int(p.pix[at-p.depth]) + int(p.pix[at]) + int(p.pix[at+p.depth])
			}
			p.spare[i] = uint8((sum + 6) / 13) // rounded: a thirteenth has no halves
		}
	}
	p.blend(1 + m)
}

// replace replaces each value by a function of it.
func (p picture) replace(by func(v uint8) uint8) {
	for c := range p.depth {
		p.replaceIn(c, by)
	}
}

func (p picture) replaceIn(channel int, by func(v uint8) uint8) {
	var table [256]uint8
	for v := range table {
		table[v] = by(uint8(v))
	}
	for i := channel; i < len(p.pix); i += p.depth {
		p.pix[i] = table[p.pix[i]]
	}
}

// counts returns how often each value occurs in a channel, and the smallest and the largest that do.
func (p picture) counts(channel int) (n [256]int, low, high int) {
	low = 255
	for i := channel; i < len(p.pix); i += p.depth {
		v := int(p.pix[i])
		n[v]++
		low, high = min(low, v), max(high, v)
	}
	return n, low, high
}

// autoContrast stretches the values of each channel to 0 to 255.
func (p picture) autoContrast() {
	for c := range p.depth {
		if _, low, high := p.counts(c); high > low {
			scale := 255 / float32(high-low)
			p.replaceIn(c, func(v uint8) uint8 { return cut(float32(int(v)-low) * scale) })
		}
	}
}

// equalize gives the values of each channel about equal frequencies.
func (p picture) equalize() {
	for c := range p.depth {
		n, _, high := p.counts(c)
		step := (p.rows*p.columns - n[high]) / 255
		if step == 0 {
			continue
		}
		below := 0
		var table [256]uint8
		for v := range table {
			table[v] = uint8(min(255, (below+step/2)/step))
			below += n[v]
		}
		p.replaceIn(c, func(v uint8) uint8 { return table[v] })
	}
}
