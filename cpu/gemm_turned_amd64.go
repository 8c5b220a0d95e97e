//go:build !noasm

package cpu

import "sync"

// turnedRows is how many rows of C are computed as columns at a time.
const turnedRows = blockCols

// turnedRoom holds those columns. It is apart from workspace, which the product within needs too:
// whoever took one for this and one for that would find the room in the wrong one the next time.
type turnedRoom struct{ c []float32 }

var turnedRooms = sync.Pool{New: func() any { return new(turnedRoom) }}

// worthTurning says whether C is better computed as (Bᵀ·Aᵀ)ᵀ, which has the same bits: products
// commute, and the order of sums is that of k. It is where C has few columns beside whole vectors,
// so that lanes would work for nothing. The costs are in multiply-adds of whole vectors, two of
// which a processor does at a time.
func worthTurning(s *tileSet, m, n, k int, a, b view, beta float32) bool {
	if beta != 0 || m < 2*s.lanes || n%s.lanes == 0 || n > turnedCols {
		return false
	}
	const chains = 4 // rows of a tile that keep the multipliers busy
	whole := func(n int) int { return (n + s.lanes - 1) / s.lanes }
	moved := 0 // numbers more than as it is; moving two costs as much as a multiply-add, within the second cache
	if worthPackingB(b, m) {
		moved -= n * k
	}
	if a.cs == 1 {
		moved += m * k
	}
	return max(n, chains)*k*whole(m)+(moved+m*n)/2 < m*k*whole(n)
}

// turnedCols is the most columns of C where lanes without work matter.
const turnedCols = 160

// productTurned is product with beta = 0, some rows of C after the other as columns of its
// transpose. op(A) is a, or e where that has bytes.
func productTurned(s *tileSet, m, n, k int, alpha float32, a view, e coded, b, c view, then epilogue) {
	room := turnedRooms.Get().(*turnedRoom)
	room.c = atLeast(room.c, n*turnedRows)
	for i := 0; i < m; i += turnedRows {
		rows := min(turnedRows, m-i)
		t := view{room.c, rows, 1}
		turned := view{b.data, b.cs, b.rs}
		if e.bytes != nil {
			multiply(s, n, rows, k, alpha, turned, view{}, e.from(i, 0).transposed(), 0, t, epilogue{})
		} else {
			part := a.from(i, 0)
			productOn(s, n, rows, k, alpha, turned, view{part.data, part.cs, part.rs}, 0, t, epilogue{})
		}
		out := c.from(i, 0)
		turnBack(out, t, rows, n)
		then.apply(i, 0, rows, n, out)
	}
	turnedRooms.Put(room)
}

// turnBack writes rows×cols elements of c, and no other: c[i][j] = t[j][i].
func turnBack(c, t view, rows, cols int) {
	whole := cols &^ 7
	if whole > 0 {
		packAcross(c.data, c.rs, t, whole, rows)
	}
	for j := whole; j < cols; j++ {
		for i, v := range t.data[j*t.rs:][:rows] {
			c.data[i*c.rs+j] = v
		}
	}
}
