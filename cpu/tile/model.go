package tile

import (
	"math"
	"unsafe"

	"fspda/cpu/isa"
)

// WithTileModel calls f while Pairs have micro-kernels of the shape and with the sums of AMX, as
// loops in Go. It is for tests, on processors without AMX too.
func WithTileModel(f func()) {
	sets, definition := pairSets, definitionOfPairs
	defer func() { pairSets, definitionOfPairs = sets, definition }()
	model := &Set{Lanes: 16, RowsOnly: true, sums: tileSums}
	for height := 1; height <= 32; height++ {
		model.Tiles = append(model.Tiles, [2]Func{
			func(args *Args) { modelTile(args, height, args.Last) },
			func(args *Args) { modelTile(args, height, 16+args.Last) }})
	}
	pairSets[isa.Active], definitionOfPairs = model, tileSums
	f()
}

// modelTile is a micro-kernel of a height and some columns.
func modelTile(t *Args, height, columns int) {
	at := func(p *float32, bytes int) *float32 { return (*float32)(unsafe.Add(unsafe.Pointer(p), bytes)) }
	if t.ACol != 4 {
		panic("cpu: tile: the numbers of a row of A do not follow each other")
	}
	for i := range height {
		from, to, row := t.A, t.C, i
		if half := (height + 1) / 2; i >= half {
			from, to, row = t.A2, t.C2, i-half
		}
		for j := range columns {
			s := float32(0)
			for run := range max(1, t.Groups) * t.Runs {
				a := row*t.ARow + run*(4*t.K+t.AJump) + run/t.Runs*t.AGap
				b := 4*j + run*(t.K*t.BRow+t.BJump) + run/t.Runs*t.BGap
				for p := 0; p < t.K; p += 16 {
					n := min(16, t.K-p)
					x := unsafe.Slice(at(from, a+4*p), n)
					y := unsafe.Slice(at(t.B, b+p*t.BRow), (n-1)*t.BRow/4+1)
					s = addTile(s, n, x, 1, y, t.BRow/4)
				}
			}
			c := at(to, row*t.CRow+4*j)
			if t.Beta == 0 {
				*c = t.Alpha * s
			} else {
				*c = float32(FMA(float64(t.Alpha), float64(s), float64(float32(t.Beta**c))))
			}
		}
	}
}

// addTile returns s plus the products of at most 16 pairs, whose numbers lie apart.
func addTile(s float32, pairs int, a []float32, apartA int, b []float32, apartB int) float32 {
	first, second := float32(0), float32(0)
	for p := range pairs {
		u, v := math.Float32bits(a[p*apartA]), math.Float32bits(b[p*apartB])
		first = flushed(float32(FMA(upper(u<<16), upper(v<<16), float64(first))))
		second = flushed(float32(FMA(upper(u), upper(v), float64(second))))
	}
	return flushed(s + flushed(first+second))
}
