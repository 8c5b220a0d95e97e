package attention

import (
	"math"
	"sync"

	"fspda/cpu/kernel"
	"fspda/cpu/tile"
	"fspda/cpu/vec"
)

var minusInf = float32(math.Inf(-1))

// plainMultiply computes C = alpha·A·B + beta·C in Go, each element with one chain of fused
// multiply-adds as in fspda/cpu/gemm.
func plainMultiply(rows, cols, depth int, alpha float32, a, b tile.View, beta float32, c tile.View) {
	for i := 0; i < rows; i += tile.PlainRows {
		for j := 0; j < cols; j += tile.PlainCols {
			tile.Plain(min(tile.PlainRows, rows-i), min(tile.PlainCols, cols-j), depth, alpha, a.From(i, 0),
				b.From(0, j), beta, c.From(i, j))
		}
	}
}

// products computes products of parts of a head with the micro-kernels in use.
type products struct {
	set  *tile.Set // nil: in Go
	args tile.Args
}

var productPool = sync.Pool{New: func() any { return new(products) }}

// newProducts returns the products of the instruction set in use, until release.
func newProducts() *products {
	p := productPool.Get().(*products)
	p.set = tile.Active()
	return p
}

func (p *products) release() {
	p.args = tile.Args{} // so that the pool keeps no operand alive
	productPool.Put(p)
}

// transposed returns the transpose of rows×depth numbers of src as the right factor of a product:
// in dst, with its rows stride numbers apart, or in place.
func (p *products) transposed(dst []float32, stride int, src tile.View, rows, depth int) tile.View {
	if p.set == nil {
		return src.T()
	}
	tile.PackTransposed(dst, stride, src, rows, depth)
	return tile.RowMajor(dst, stride)
}

// scaledKeys returns the transpose of rows×width keys times 1/√h as the right factor of a product:
// in dst, with its rows stride numbers apart, or a view of scratch. The factor comes after the
// transposition, in one pass over contiguous rows; columns after the keys are never read.
func (p *products) scaledKeys(dst, scratch []float32, stride int, keys tile.View, rows, width int) tile.View {
	if p.set == nil {
		return scaled(scratch, keys, rows, width).T()
	}
	tile.PackTransposed(dst, stride, keys, rows, width)
	all, scale := dst[:width*stride], [1]float64{keyScale(width)}
	vec.TimesRows(all, all, scale[:], len(all))
	return tile.RowMajor(dst, stride)
}

// right returns rows×cols numbers of src as the right factor of a product: in place, or in dst with
// rows of whole vectors where the micro-kernels would read beyond the last column.
func (p *products) right(dst []float32, src tile.View, rows, cols int) tile.View {
	if p.set == nil || p.set.Masked || cols%p.set.Lanes == 0 {
		return src
	}
	stride := padded(cols)
	for i := range rows {
		copy(dst[i*stride:][:cols], src.Data[i*src.RowStride:])
	}
	return tile.RowMajor(dst, stride)
}

// multiply computes C = alpha·A·B + beta·C, each element with one chain of fused multiply-adds. The
// rows of B lie in whole vectors, or are not read beyond the last column.
func (p *products) multiply(rows, cols, depth int, alpha float32, a, b tile.View, beta float32, c tile.View) {
	if p.set == nil {
		plainMultiply(rows, cols, depth, alpha, a, b, beta, c)
		return
	}
	_, _ = a.Data[(rows-1)*a.RowStride+(depth-1)*a.ColStride], b.Data[(depth-1)*b.RowStride+cols-1]
	_ = c.Data[(rows-1)*c.RowStride+cols-1]
	t, lanes := &p.args, p.set.Lanes
	*t = tile.Args{ARow: 4 * a.RowStride, ACol: 4 * a.ColStride, BRow: 4 * b.RowStride, K: depth, Runs: 1,
		CRow: 4 * c.RowStride, Alpha: alpha, Beta: beta}
	strips := (rows + len(p.set.Tiles) - 1) / len(p.set.Tiles)
	for s := range strips {
		i, height := kernel.Split(s, strips, rows)
		half, tiles := i+(height+1)/2, &p.set.Tiles[height-1]
		t.A, t.A2 = &a.Data[i*a.RowStride], nil
		if height > 1 {
			t.A2 = &a.Data[half*a.RowStride]
		}
		first, second := i*c.RowStride, min(half, rows-1)*c.RowStride
		column := func(j, last int, run tile.Func) {
			t.B, t.C, t.C2, t.Last = &b.Data[j], &c.Data[first+j], &c.Data[second+j], last
			run(t)
		}
		j := 0
		for ; cols-j >= 2*lanes; j += 2 * lanes {
			column(j, lanes, tiles[1])
		}
		switch rest := cols - j; {
		case rest > lanes:
			column(j, rest-lanes, tiles[1])
		case rest > 0:
			column(j, rest, tiles[0])
		}
	}
}
