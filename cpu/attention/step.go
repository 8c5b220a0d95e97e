package attention

import (
	"math"

	"fspda/cpu/kernel"
	"fspda/cpu/tile"
	"fspda/cpu/vec"
)

// A part of a window, with the keys and values of earlier positions in a cache. Rows have the bits
// of short.go, for windows of any length. A window of at most Short tokens that is computed whole
// has the same bits.

// stepFloats is the scratch memory of a worker: a query, a row of scores, and values.
func stepFloats(dims []int) int {
	positions, width := dims[1], dims[3]
	return padded(width*padded(1)) + padded(positions) + padded(positions*padded(width))
}

func stepScratch(dims []int, threads int) int { return threads * stepFloats(dims) }

// step adds the keys and values of the rows to the cache, then computes the rows.
func step(o *kernel.Args) error {
	rows, positions, heads, width := o.Dims[0], o.Dims[1], o.Dims[2], o.Dims[3]
	at, err := kernel.Position(o.In[2], rows, positions)
	if err != nil {
		return err
	}
	c, moved, scale := heads*width, o.Out[1], [1]float64{1 / math.Sqrt(float64(width))}
	if &moved[0] != &o.In[1][0] {
		copy(moved, o.In[1])
	}
	for r := range rows {
		qkv, row := o.In[0][3*r*c:][:3*c], moved[2*(at+r)*c:][:2*c]
		vec.TimesRows(row[:c], qkv[c:2*c], scale[:], c)
		copy(row[c:], qkv[2*c:])
	}
	work := float64(rows) * float64(at+rows) * float64(c)
	o.Parallel(max(1, min(o.Threads(), heads, int(work/leastWork))), stepPart)
	return nil
}

func stepPart(o *kernel.Args, part, of int) {
	rows, positions, heads, width := o.Dims[0], o.Dims[1], o.Dims[2], o.Dims[3]
	at, c := int(o.In[2][0]), heads*width
	p := newProducts()
	defer p.release()
	from, to := kernel.SplitUnits(part, of, heads, 1)
	for head := from; head < to; head++ {
		keys := tile.RowMajor(o.Out[1][head*width:], 2*c)
		mem := arena{o.ScratchPart(part, of)}
		queryScratch, scores := mem.take(width*padded(1)), mem.take(padded(positions))
		valueScratch := mem.take(positions * padded(width))
		values := p.right(valueScratch, tile.RowMajor(o.Out[1][c+head*width:], 2*c), at+rows, width)
		for i := range rows {
			n := at + i + 1
			query := p.right(queryScratch, tile.RowMajor(o.In[0][3*i*c+head*width:], 1), width, 1)
			p.multiply(n, 1, width, 1, keys, query, 0, tile.RowMajor(scores, 1))
			share := tile.RowMajor(scores, n)
			softmax(share, scores, n-1, 1, nil)
			p.multiply(1, width, n, 1, share, values, 0, tile.RowMajor(o.Out[0][i*c+head*width:], c))
		}
	}
}
