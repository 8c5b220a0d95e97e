package model

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"gorgonia.org/tensor"
)

// geometry describes a kernel besides the shapes of its inputs: the window of one over images, the
// groups of channels, the heads of attention, the tensors of an embedding.
type geometry struct {
	// of the input image, for kernels without that input
	h, w        int
	r, s        int // rows and columns of the window, for kernels without a filter input
	stride, pad int

	heads                 int
	groups                int // number of groups of channels
	layer                 int // number of the dropout layer, counted from 1
	vocabulary, positions int // sizes that the gradient of an embedding needs
}

// out returns the number of positions of a window of that side along an axis of that length.
func (g geometry) out(length, side int) int { return (length+2*g.pad-side)/g.stride + 1 }

// fits checks a window of r×s over an image of h×w.
func (g geometry) fits(h, w, r, s int) error {
	if g.stride < 1 || g.pad < 0 || g.pad >= r || g.pad >= s || r > h+2*g.pad || s > w+2*g.pad {
		return fmt.Errorf("a window of %d×%d, stride %d, padding %d does not fit an image of %d×%d: want stride >= "+
			"1 and padding < window <= padded image", r, s, g.stride, g.pad, h, w)
	}
	return nil
}

// axes are the sizes of a kernel's axes by letter, and the axes of a *: see definition.
type axes struct {
	size map[rune]int
	any  tensor.Shape
}

// axes takes the sizes of the axes from the inputs, and from the geometry of a kernel with a
// window.
func (d *definition) axes(in []tensor.Shape, g geometry) (axes, error) {
	a := axes{size: map[rune]int{'1': 1, '3': 3, '4': 4, 't': g.stride, 'd': g.pad}}
	for axis, n := range map[rune]int{'h': g.h, 'w': g.w, 'r': g.r, 's': g.s, 'H': g.heads, 'G': g.groups, 'l': g.layer,
		'v': g.vocabulary, 'i': g.positions} {
		if n > 0 {
			a.size[axis] = n
		}
	}
	fit := true
	for i, letters := range strings.Fields(d.in) {
		fit = fit && a.bind(letters, in[i])
	}
	if h, w, r, s := a.size['h'], a.size['w'], a.size['r'], a.size['s']; fit && r > 0 {
		if err := g.fits(h, w, r, s); err != nil {
			return a, err
		}
		fit = a.bind("pq", tensor.Shape{g.out(h, r), g.out(w, s)})
	}
	if heads := a.size['H']; fit && heads > 0 {
		if c := a.size['c']; c%heads != 0 {
			return a, fmt.Errorf("width %d does not divide into %d heads", c, heads)
		}
		a.size['e'] = a.size['c'] / heads
	}
	if groups := a.size['G']; fit && groups > 0 && a.size['c']%groups != 0 {
		return a, fmt.Errorf("%d channels do not divide into %d groups, want a number of groups that divides that of "+
			"channels", a.size['c'], groups)
	}
	if !fit {
		return a, fmt.Errorf("inputs of shapes %v do not fit: want %s, a letter for each axis", in, d.in)
	}
	return a, nil
}

// bind gives the axes of a shape their letters, and returns false if they do not fit.
func (a *axes) bind(letters string, s tensor.Shape) bool {
	if last, ok := strings.CutPrefix(letters, "*"); ok {
		n := len(s)
		for range split(last) {
			n--
		}
		if n < 1 || a.any != nil && !slices.Equal(a.any, s[:n]) { // Shape.Eq treats (3) and (3, 1) as equal
			return false
		}
		a.any, letters, s = s[:n], last, s[n:]
	}
	i := 0
	for axis, times := range split(letters) {
		if i == len(s) || s[i]%times != 0 {
			return false
		}
		if n, ok := a.size[axis]; ok && n*times != s[i] {
			return false
		}
		a.size[axis] = s[i] / times
		i++
	}
	return i == len(s)
}

// split returns the axes of letters, and how many times as long they are: 3c is three times c.
func split(letters string) iter.Seq2[rune, int] {
	return func(yield func(axis rune, times int) bool) {
		for i := 0; i < len(letters); i++ {
			times := 1
			if n := letters[i]; n >= '2' && n <= '9' && i+1 < len(letters) {
				times = int(n - '0')
				i++
			}
			if !yield(rune(letters[i]), times) {
				return
			}
		}
	}
}

// shape returns the shape of letters.
func (a *axes) shape(letters string) (s tensor.Shape) {
	for axis, times := range split(letters) {
		if axis == '*' {
			s = append(s, a.any...)
		} else {
			s = append(s, times*a.size[axis])
		}
	}
	return s
}

// shapes checks the shapes of the inputs and returns the shapes of the outputs.
func (d *definition) shapes(in []tensor.Shape, g geometry) (out []tensor.Shape, err error) {
	a, err := d.axes(in, g)
	if err != nil {
		return nil, err
	}
	for _, letters := range strings.Fields(d.out) {
		out = append(out, a.shape(letters))
	}
	return out, nil
}

// callDims returns the Dims of a call with inputs that fit.
func (d *definition) callDims(in []tensor.Shape, g geometry) (dims []int) {
	a, _ := d.axes(in, g)
	for _, letters := range strings.Fields(d.dims) {
		dims = append(dims, size(a.shape(letters)))
	}
	return dims
}
