package dist

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// chunkTopK sends the Keep largest numbers of each chunk of a tensor, among equal ones the first. A
// matrix falls into chunks of chunkSide(rows) × chunkSide(columns), whose numbers count by rows,
// and a vector into runs. With bins the numbers of each tensor that are sent are rounded to the
// means of their bins: of n numbers,
//
//	shift = mean of v    c = v - shift
//	step = 6·(deviation of c, with n-1)/bins, or 1 if the deviation is 0
//	code = clamp(round(c/step + bins/2), 0, bins-1)    table[code] = mean of the c with that code
//	Q(v) = table[code] + shift
//
// where round takes halves to even numbers, and the table has zeros for codes that no number has.
// It is the compressor of sparseloco (Sarfi and others 2025).
//
// A message has the numbers as they arrive and, with bins, a vector of the table and the shift of
// each tensor, one after the other. The codec writes these, then the indices within the chunks,
// then the codes.
type chunkTopK struct {
	name    string
	bins    int // 0: none.
	tensors []chunked
	dim     int
	kept    int // numbers in a message
	indices int // bits of all indices
	whole   int // numbers in chunks that are sent whole
}

// chunked is a tensor in chunks.
type chunked struct {
	from, rows, cols int
	high, wide       int // sides of a chunk
	chunks           int // number of chunks
	keep             int // numbers sent of a chunk
	width            int // bits of an index; 0: chunks are sent whole
	at               int // numbers sent of the tensors before
}

// sent is how many numbers of the tensor are sent.
func (t *chunked) sent() int { return t.chunks * t.keep }

// place returns the chunk of a coordinate of the tensor and its number in it.
func (t *chunked) place(at int) (chunk, index int) {
	row, col := (at-t.from)/t.cols, (at-t.from)%t.cols
	return row/t.high*(t.cols/t.wide) + col/t.wide, row%t.high*t.wide + col%t.wide
}

// coordinate is the inverse of place.
func (t *chunked) coordinate(chunk, index int) int {
	across := t.cols / t.wide
	return t.from + (chunk/across*t.high+index/t.wide)*t.cols + chunk%across*t.wide + index%t.wide
}

var (
	sideArg = Whole("side", 2, maxSide, "expected the largest side of a chunk, from 2 to 64, not %q: 64")
	keepArg = Whole("k", 1, math.MaxInt, "expected the numbers that a chunk sends, at least 1, not %q: 64")
	binsArg = Arg{"bins", WholeArg, func(text string) (float64, error) {
		v, err := Whole("bins", 2, maxBins, "expected the number of bins, 2, 4, 16 or 256, not %q").Read(text)
		if err == nil && !slices.Contains([]int{2, 4, 16, maxBins}, int(v)) {
			err = fmt.Errorf("expected the number of bins, 2, 4, 16 or 256, not %q", text)
		}
		return v, err
	}}
)

const maxBins = 256

func newChunkTopK(p Spec, o CompressorOptions) (Compressor, error) {
	side, keep := p.Whole(0), p.Whole(1)
	d, err := totalSize(p, o.Sizes)
	c := &chunkTopK{name: p.String(), dim: d}
	if len(p.Texts) > 2 {
		c.bins = p.Whole(2)
	}
	shapes := o.Shapes
	if shapes == nil {
		for _, n := range o.Sizes {
			shapes = append(shapes, [2]int{n, 0})
		}
	}
	from := 0
	for _, s := range shapes {
		t := chunked{from: from, rows: s[0], cols: s[1], at: c.kept}
		if t.cols == 0 {
			t.rows, t.cols = 1, s[0]
		}
		t.high, t.wide = chunkSide(t.rows, side), chunkSide(t.cols, side)
		t.chunks = t.rows / t.high * (t.cols / t.wide)
		if t.keep = min(keep, t.high*t.wide); t.keep < t.high*t.wide {
			t.width = IndexBits(t.high * t.wide)
		} else {
			c.whole += t.sent()
		}
		c.kept += t.sent()
		c.indices += t.sent() * t.width
		c.tensors = append(c.tensors, t)
		from += t.rows * t.cols
	}
	return c, err
}

func (c *chunkTopK) String() string { return c.name }
func (*chunkTopK) Picked() Mask     { return nil }

// Delta is the least share of numbers that are sent. With bins it is 0: all numbers may be in one
// bin, whose mean may be 0.
func (c *chunkTopK) Delta() float64 {
	least := 1.0
	for _, t := range c.tensors {
		least = min(least, float64(t.keep)/float64(t.high*t.wide))
	}
	if c.bins > 0 {
		return 0
	}
	return least
}

func (c *chunkTopK) Compress(p *Payload, v []float32, t, _, _ int) error {
	if err := checkFinite(c.name, v); err != nil {
		return err
	}
	p.Dim, p.T = len(v), t
	p.Coords = p.Coords[:0]
	for i := range c.tensors {
		c.largest(p, v, &c.tensors[i])
	}
	p.resize(1)
	p.Vectors[0] = gatherFloats(p.Vectors[0], v, p.Coords)
	if c.bins == 0 {
		return nil
	}
	p.resize(2)
	p.Vectors[1] = grow(p.Vectors[1], len(c.tensors)*(c.bins+1))
	for i, t := range c.tensors {
		c.round(p.Vectors[0][t.at:][:t.sent()], p.Vectors[1][i*(c.bins+1):][:c.bins+1])
	}
	return nil
}

// largest appends the coordinates of the largest numbers of the chunks of a tensor, ascending.
func (c *chunkTopK) largest(p *Payload, v []float32, t *chunked) {
	begin := len(p.Coords)
	p.numbers = grow(p.numbers, t.high*t.wide)
	for chunk := range t.chunks {
		for row := range t.high {
			copy(p.numbers[row*t.wide:][:t.wide], v[t.coordinate(chunk, row*t.wide):])
		}
		first := len(p.Coords)
		p.Coords = p.largest(p.Coords, p.numbers, t.keep, 0)
		for k, index := range p.Coords[first:] {
			p.Coords[first+k] = uint32(t.coordinate(chunk, int(index)))
		}
	}
	slices.Sort(p.Coords[begin:])
}

// round rounds numbers to the means of their bins, and sets table to these and the shift.
func (c *chunkTopK) round(v, table []float32) {
	n, bins := float64(len(v)), float64(c.bins)
	sum, squares := 0.0, 0.0
	for _, x := range v {
		sum += float64(x)
	}
	shift := float32(sum / n)
	for _, x := range v {
		squares += square(float64(x) - float64(shift))
	}
	step := 6 * math.Sqrt(squares/(n-1)) / bins
	if !(step > 0) || math.IsInf(step, 0) {
		step = 1
	}
	code := func(x float32) int {
		at := (float64(x) - float64(shift)) / step
		return int(math.Max(0, math.Min(bins-1, math.RoundToEven(at+float64(bins/2)))))
	}
	var sums, counts [maxBins]float64
	for _, x := range v {
		k := code(x)
		sums[k] += float64(x) - float64(shift)
		counts[k]++
	}
	for k := range c.bins {
		table[k] = float32(sums[k] / math.Max(1, counts[k]))
	}
	table[c.bins] = shift
	for i, x := range v {
		v[i] = c.mean(table, code(x))
	}
}

func square(x float64) float64 { return float64(x * x) }

// mean is the number that a code stands for.
func (c *chunkTopK) mean(table []float32, code int) float32 {
	return float32(float64(table[code]) + float64(table[c.bins]))
}

func (c *chunkTopK) codeBits() int {
	if c.bins == 0 {
		return 32
	}
	return bits.Len(uint(c.bins - 1))
}

func (c *chunkTopK) Sent(Payload) Sent {
	m := Sent{Values: c.kept, ValueBits: c.codeBits(), Mask: c.kept, Dim: c.dim, IndexBits: c.indices, Whole: c.whole,
		Indices: true, DataDependent: true}
	if c.bins > 0 {
		m.ExtraBits = 32 * len(c.tensors) * (c.bins + 1)
	}
	return m
}

// indexWidth is the width of an index of a tensor in an accounting.
func (t *chunked) indexWidth(a Accounting) int {
	if t.width > 0 && a == Reference {
		return 64
	}
	return t.width
}

func (c *chunkTopK) Encode(dst []byte, p Payload, a Accounting, _ bool) ([]byte, error) {
	if len(p.Vectors) != 1+min(1, c.bins) || len(p.Vectors[0]) != c.kept || len(p.Coords) != c.kept ||
		c.bins > 0 && len(p.Vectors[1]) != len(c.tensors)*(c.bins+1) {
		return nil, fmt.Errorf("dist: %s of %d numbers cannot encode a payload that it did not compress", c.name,
			c.kept)
	}
	w := bitWriter{dst: dst}
	if c.bins > 0 {
		writeFloats(&w, p.Vectors[1])
	}
	for _, t := range c.tensors {
		width := t.indexWidth(a)
		if width == 0 {
			continue
		}
		list, filled := make([]int, t.sent()), make([]int, t.chunks)
		for _, at := range p.Coords[t.at:][:t.sent()] {
			chunk, index := t.place(int(at))
			list[chunk*t.keep+filled[chunk]] = index
			filled[chunk]++
		}
		for _, index := range list {
			w.put(uint64(index), width)
		}
	}
	if c.bins == 0 {
		writeFloats(&w, p.Vectors[0])
		return w.bytes(), nil
	}
	for i, t := range c.tensors {
		table := p.Vectors[1][i*(c.bins+1):][:c.bins+1]
		for _, x := range p.Vectors[0][t.at:][:t.sent()] {
			code := 0
			for code < c.bins-1 && c.mean(table, code) != x {
				code++
			}
			w.put(uint64(code), c.codeBits())
		}
	}
	return w.bytes(), nil
}

func (c *chunkTopK) Decode(p *Payload, b []byte, a Accounting, _ bool) error {
	size := c.kept*c.codeBits() + c.Sent(Payload{}).ExtraBits
	for _, t := range c.tensors {
		size += t.sent() * t.indexWidth(a)
	}
	if err := checkSize(c.name, b, size); err != nil {
		return err
	}
	r := bitReader{src: b}
	p.resize(1 + min(1, c.bins))
	if c.bins > 0 {
		p.Vectors[1] = readFloats(&r, p.Vectors[1], len(c.tensors)*(c.bins+1))
	}
	p.Coords = p.Coords[:0]
	for _, t := range c.tensors {
		if err := c.decodeIndices(p, &r, &t, a); err != nil {
			return err
		}
	}
	if c.bins == 0 {
		p.Vectors[0] = readFloats(&r, p.Vectors[0], c.kept)
		return nil
	}
	p.Vectors[0] = grow(p.Vectors[0], c.kept)
	for i, t := range c.tensors {
		table := p.Vectors[1][i*(c.bins+1):][:c.bins+1]
		for k := range t.sent() {
			p.Vectors[0][t.at+k] = c.mean(table, int(r.take(c.codeBits())))
		}
	}
	return nil
}

// decodeIndices appends the coordinates of the numbers of a tensor, ascending.
func (c *chunkTopK) decodeIndices(p *Payload, r *bitReader, t *chunked, a Accounting) error {
	begin, width := len(p.Coords), t.indexWidth(a)
	for chunk := range t.chunks {
		last := -1
		for index := range t.keep {
			if width > 0 {
				index = int(min(r.take(width), math.MaxInt32))
			}
			if index >= t.high*t.wide || index <= last {
				return fmt.Errorf("dist: %s: an index of a chunk is %d after %d, expected ascending indices below %d; "+
					"the message is damaged", c.name, index, last, t.high*t.wide)
			}
			last = index
			p.Coords = append(p.Coords, uint32(t.coordinate(chunk, index)))
		}
	}
	slices.Sort(p.Coords[begin:])
	return nil
}
