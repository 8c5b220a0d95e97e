package kerneltest

import (
	"math"

	"fspda/cuda/kernels"
	"fspda/device"
)

// orthogonalEnds copies matrices of two vectors to a batch, divided by their norms, and back. Some
// are higher than wide, one is of zeros, and one has several tiles and partial sums.
func orthogonalEnds(b *fixture) {
	const vectors, stride = 2, 64
	for _, shape := range [][2]int{{5, 7}, {33, 140}} {
		short, long := shape[0], shape[1]
		n := short * long
		var list []device.Orthogonal
		for i := range 3 {
			m := device.Orthogonal{Scale: 0.5 + float64(i),
				Block: device.Block{Offset: 3 + i*(n+2), Rows: short, Cols: long}}
			if i == 1 {
				m.Rows, m.Cols = long, short
			}
			list = append(list, m)
		}
		each := (n + stride - 1) / stride * stride
		for _, e := range []kernels.Element{kernels.F32, kernels.BF16} {
			of := kernels.OrthogonalBatch{Element: e, List: at(b, kernels.OrthogonalList(list)), Matrices: len(list),
				Short: short, Long: long, Stride: each}
			var got, want [vectors][]float32
			for v := range vectors {
				got[v] = normals(string(rune('a'+v)), 3*(n+2)+5)
				clear(got[v][list[2].Offset:][:n])
				of.Vectors = append(of.Vectors, at(b, got[v]))
				want[v] = append([]float32(nil), got[v]...)
			}
			of.Parts = at(b, make([]float64, vectors*len(list)*of.SquareParts()))
			x := make([]byte, e.Size()*vectors*len(list)*each)
			start := of.Start(at(b, x), 1e-7)
			b.run(start[0], start[1], of.End(at(b, x)))
			for v := range vectors {
				for i, m := range list {
					checkDirection(b, e, got[v][m.Offset:][:n], want[v][m.Offset:][:n], m.Scale)
					copy(want[v][m.Offset:], got[v][m.Offset:][:n])
					from := x[e.Size()*(v*len(list)+i)*each:]
					for k := range n { // row k/long of the batch's matrix
						place := k
						if m.Rows > m.Cols {
							place = k%long*short + k/long
						}
						if y := float32(m.Scale) * load(e, from[e.Size()*k:]); y != got[v][m.Offset+place] {
							b.Fatalf("%v, %d×%d: number %d of the batch is %v, want %v", e, m.Rows, m.Cols, k, y,
								got[v][m.Offset+place])
						}
					}
				}
				sameBits(b, "numbers beside the matrices", got[v], want[v])
			}
		}
	}
}

// checkDirection compares numbers with scale times those of a matrix over its norm.
func checkDirection(b *fixture, e kernels.Element, got, matrix []float32, scale float64) {
	norm, most := 0.0, 2e-7
	for _, v := range matrix {
		norm += float64(v) * float64(v)
	}
	if e == kernels.BF16 {
		most = 1.0 / 256
	}
	for i, v := range matrix {
		want := scale * float64(v) / max(math.Sqrt(norm), 1e-7)
		if math.Abs(float64(got[i])-want) > most*math.Abs(want) {
			b.Errorf("%v: number %d is %v, want %v", e, i, got[i], want)
			return
		}
	}
}
