package dist

import (
	"fmt"
	"math"
)

// number is the precision of a Transform. Agents use float32, tests float64 too.
type number interface{ float32 | float64 }

// Transform is the orthonormal discrete cosine transform (DCT-II) of a flat vector in chunks: a
// matrix is cut into chunks of Side(rows) × Side(columns), a vector into chunks of Side(length).
// The coefficients of a chunk lie one after the other, in a matrix by rows. It is safe
// for concurrent use.
type Transform[T number] struct {
	chunks []chunk
	// basis has an n×n matrix for each side n. Its element (u, i) is the i-th number of frequency u.
	basis  map[int][]T
	turned map[int][]T // the transposed matrices
}

// chunk is a rectangle of a matrix, or a part of a vector, with one row.
type chunk struct {
	from, stride int // its first number in the vector, and the distance of its rows
	at           int // its first coefficient
	rows, cols   int
}

func (c chunk) len() int { return c.rows * c.cols }

// maxSide limits the sides of chunks.
const maxSide = 64

// chunkSide is the largest divisor of n that is at most limit.
func chunkSide(n, limit int) int {
	for side := min(n, limit); ; side-- {
		if n%side == 0 {
			return side
		}
	}
}

// NewTransform makes the transform of tensors of the given rows and columns, one after the other; 0
// columns mean a vector. The sides of chunks are at most side.
func NewTransform[T number](shapes [][2]int, side int) *Transform[T] {
	t := &Transform[T]{basis: map[int][]T{}, turned: map[int][]T{}}
	from, at := 0, 0
	for _, s := range shapes {
		rows, cols := s[0], s[1]
		if cols == 0 {
			rows, cols = 1, s[0]
		}
		c := chunk{stride: cols, rows: chunkSide(rows, side), cols: chunkSide(cols, side)}
		t.prepare(c.rows)
		t.prepare(c.cols)
		for i := 0; i < rows; i += c.rows {
			for j := 0; j < cols; j += c.cols {
				c.from, c.at = from+i*cols+j, at
				t.chunks = append(t.chunks, c)
				at += c.len()
			}
		}
		from += rows * cols
	}
	return t
}

// prepare computes the matrix of a side. Elements that are zero are exactly 0, so that no rounding
// error takes their place.
func (t *Transform[T]) prepare(n int) {
	if t.basis[n] != nil {
		return
	}
	b, turned := make([]T, n*n), make([]T, n*n)
	for u := range n {
		scale := math.Sqrt(2 / float64(n))
		if u == 0 {
			scale = math.Sqrt(1 / float64(n))
		}
		for i := range n {
			if v := math.Cos(math.Pi * float64((2*i+1)*u) / float64(2*n)); math.Abs(v) > 1e-12 {
				b[u*n+i] = T(scale * v)
				turned[i*n+u] = b[u*n+i]
			}
		}
	}
	t.basis[n], t.turned[n] = b, turned
}

// Forward sets dst to the coefficients of v.
func (t *Transform[T]) Forward(dst, v []T) {
	var half [maxSide * maxSide]T
	for _, c := range t.chunks {
		across, down := t.turned[c.cols], t.basis[c.rows]
		out := dst[c.at:][:c.len()]
		rows := half[:c.len()]
		if c.rows == 1 {
			rows = out
		}
		for i := range c.rows {
			sumRows(rows[i*c.cols:][:c.cols], v[c.from+i*c.stride:][:c.cols], across, c.cols)
		}
		for u := 0; u < c.rows && c.rows > 1; u++ {
			sumRows(out[u*c.cols:][:c.cols], down[u*c.rows:][:c.rows], rows, c.cols)
		}
	}
}

// Inverse sets dst to the vector of these coefficients. It is fast where most of them are zero.
func (t *Transform[T]) Inverse(dst, coefficients []T) {
	var half [maxSide * maxSide]T
	var some [maxSide]int // frequencies of the rows that are not zero
	var factors [maxSide]T
	for _, c := range t.chunks {
		across, up, n := t.basis[c.cols], t.turned[c.rows], 0
		for u := range c.rows {
			row, zero := half[n*c.cols:][:c.cols], true
			for w, x := range coefficients[c.at+u*c.cols:][:c.cols] {
				if x == 0 {
					continue
				}
				if zero {
					clear(row)
				}
				addScaled(row, x, across[w*c.cols:][:c.cols])
				zero = false
			}
			if !zero {
				some[n] = u
				n++
			}
		}
		for i := range c.rows {
			for k, u := range some[:n] {
				factors[k] = up[i*c.rows+u]
			}
			sumRows(dst[c.from+i*c.stride:][:c.cols], factors[:n], half[:], c.cols)
		}
	}
}

// Signs sets dst to the signs of the vector whose coefficients are sums divided by counts, or 0
// where that is 0. Numbers below a ten millionth of the largest of their chunk are rounding errors
// of 0. It overwrites sums.
func (t *Transform[T]) Signs(dst, sums, counts []T) {
	for i, n := range counts {
		if n > 1 {
			sums[i] /= n
		}
	}
	t.Inverse(dst, sums)
	for _, c := range t.chunks {
		var most T
		for i := range c.rows {
			for _, x := range dst[c.from+i*c.stride:][:c.cols] {
				most = max(most, x, -x)
			}
		}
		for i := range c.rows {
			row := dst[c.from+i*c.stride:][:c.cols]
			for k, x := range row {
				switch {
				case x > 1e-7*most:
					row[k] = 1
				case x < -1e-7*most:
					row[k] = -1
				default:
					row[k] = 0
				}
			}
		}
	}
}

// sumRows computes dst = Σ a[k]·v[k·stride:], from zero on.
func sumRows[T number](dst, a, v []T, stride int) {
	if d, ok := any(dst).([]float32); ok && sumRowsFast(d, any(a).([]float32), any(v).([]float32), stride) {
		return
	}
	clear(dst)
	for k, x := range a {
		addScaled(dst, x, v[k*stride:])
	}
}

// addScaled computes dst += a·v. It rounds products and sums one by one, on every machine.
func addScaled[T number](dst []T, a T, v []T) {
	for i, x := range v[:len(dst)] {
		dst[i] += T(a * x) //nolint:unconvert // the conversion rounds the product
	}
}

// DCT sends the Keep largest coefficients of each chunk of a [Transform] of sides up to Side, among
// equal ones the first. It is the compressor of demo: its values are coefficients, so that
// receivers need the transform.
type DCT struct {
	*Transform[float32]
	Side, Keep int

	dim, kept, indexBits int
	whole                int // kept coefficients in chunks that are sent whole
}

var _ Inverter = (*DCT)(nil)

func newDCT(p Spec, o CompressorOptions) *DCT {
	side, keep := p.Whole(0), p.Whole(1)
	shapes := o.Shapes
	if shapes == nil {
		for _, n := range o.Sizes {
			shapes = append(shapes, [2]int{n, 0})
		}
	}
	c := &DCT{Transform: NewTransform[float32](shapes, side), Side: side, Keep: keep}
	for _, k := range c.chunks {
		c.dim += k.len()
		c.kept += c.of(k)
		c.indexBits += c.of(k) * c.width(k)
		if c.width(k) == 0 {
			c.whole += c.of(k)
		}
	}
	return c
}

// of is the number of coefficients that a chunk keeps.
func (c *DCT) of(k chunk) int { return min(c.Keep, k.len()) }

// width is the number of bits of an index in a chunk; 0 if all are sent.
func (c *DCT) width(k chunk) int {
	if c.Keep >= k.len() {
		return 0
	}
	return IndexBits(k.len())
}

func (c *DCT) String() string { return fmt.Sprintf("dct(%d,%d)", c.Side, c.Keep) }

func (*DCT) Picked() Mask { return nil }

// Delta is the least share of kept coefficients: the transform keeps lengths.
func (c *DCT) Delta() float64 {
	least := 1.0
	for _, k := range c.chunks {
		least = min(least, float64(c.of(k))/float64(k.len()))
	}
	return least
}

// Compress implements [Compressor]. The coordinates are positions of coefficients.
func (c *DCT) Compress(p *Payload, v []float32, _, _, _ int) error {
	if err := checkFinite("dct", v); err != nil {
		return err
	}
	p.Dim = len(v)
	p.numbers = grow(p.numbers, len(v))
	c.Forward(p.numbers, v)
	p.Coords = p.Coords[:0]
	for _, k := range c.chunks {
		p.Coords = p.largest(p.Coords, p.numbers[k.at:][:k.len()], c.of(k), uint32(k.at))
	}
	p.resize(1)
	p.Vectors[0] = gatherFloats(p.Vectors[0], p.numbers, p.Coords)
	return nil
}

func (c *DCT) Sent(Payload) Sent {
	return Sent{Values: c.kept, ValueBits: 32, Mask: c.kept, Dim: c.dim, IndexBits: c.indexBits, Whole: c.whole,
		Indices: true, DataDependent: true}
}

// indexWidth is the width of an index of a chunk in an accounting.
func (c *DCT) indexWidth(k chunk, a Accounting) int {
	switch {
	case c.width(k) == 0:
		return 0
	case a == Reference:
		return 64
	}
	return c.width(k)
}

// Encode implements [Codec]. The indices count within their chunks.
func (c *DCT) Encode(dst []byte, p Payload, a Accounting, _ bool) ([]byte, error) {
	if len(p.Vectors) != 1 || len(p.Vectors[0]) != c.kept || len(p.Coords) != c.kept {
		return nil, fmt.Errorf("dist: %s of %d coefficients cannot encode a payload that it did not compress", c,
			c.kept)
	}
	w, next := bitWriter{dst: dst}, 0
	for _, k := range c.chunks {
		for _, at := range p.Coords[next:][:c.of(k)] {
			if width := c.indexWidth(k, a); width > 0 {
				w.put(uint64(int(at)-k.at), width)
			}
		}
		next += c.of(k)
	}
	writeFloats(&w, p.Vectors[0])
	return w.bytes(), nil
}

func (c *DCT) Decode(p *Payload, b []byte, a Accounting, _ bool) error {
	bits := c.indexBits
	if a == Reference {
		bits = 64 * (c.kept - c.whole)
	}
	if err := checkSize("dct", b, 32*c.kept+bits); err != nil {
		return err
	}
	r := bitReader{src: b}
	p.Coords = p.Coords[:0]
	for _, k := range c.chunks {
		width := c.indexWidth(k, a)
		for n := range c.of(k) {
			at := n // all coefficients of the chunk
			if width > 0 {
				at = int(r.take(width))
			}
			if at >= k.len() || n > 0 && uint32(k.at+at) <= p.Coords[len(p.Coords)-1] {
				return fmt.Errorf("dist: dct: index %d of a chunk is %d, expected ascending indices below %d; the "+
					"message is damaged", n, at, k.len())
			}
			p.Coords = append(p.Coords, uint32(k.at+at))
		}
	}
	p.resize(1)
	p.Vectors[0] = readFloats(&r, p.Vectors[0], c.kept)
	return nil
}
