package devicetest

import (
	"math"

	"fspda/device"
	"fspda/internal/rng"
)

// orthogonalError is the largest error of an Orthogonalize, relative to the norm of the result, by
// the bits of the factors of the device's products. In float32 768×768 matrices have 2e-6. Rounding
// errors grow up to 485-fold in directions in which a matrix has next to nothing: with the 8 bits
// of bfloat16 the result of a matrix of rank 1 is mostly that.
func orthogonalError(bits int) float64 {
	switch {
	case bits >= 24:
		return 5e-5
	case bits > 8:
		return 2e-2
	}
	return 1e-1
}

// factorBits is the bits to which a device rounds the factors of an Orthogonalize's products.
func factorBits(d device.Device) int {
	if r, ok := d.(interface{ FactorBits() int }); ok {
		return r.FactorBits()
	}
	return 24
}

// checkOrthogonalize compares matrices of many shapes, wide, tall and square, one of zeros and one
// of rank 1 among them, with float64; a slow device compares the small ones. The numbers around and
// between them keep their bits.
func checkOrthogonalize(f *field) {
	s := rng.New(6, "orthogonalize")
	var all []device.Orthogonal
	offset := 3
	for _, shape := range [][2]int{{2, 3}, {3, 2}, {1, 1}, {1, 40}, {33, 1}, {64, 64}, {100, 784}, {130, 70}, {16, 27},
		{200, 200}, {5, 5}, {7, 9}, {0, 4}} {
		if f.few && shape[0]*shape[1] > 20_000 {
			continue
		}
		all = append(all, device.Orthogonal{Block: device.Block{Offset: offset, Rows: shape[0], Cols: shape[1]},
			Scale: 0.2 + s.Float64()})
		offset += shape[0]*shape[1] + s.IntN(3)
	}
	numbers := make([]float32, offset+2)
	for i := range numbers {
		numbers[i] = float32(s.Norm())
	}
	zeros, rank := all[len(all)-3].Block, all[len(all)-2].Block
	clear(numbers[zeros.Offset:][:zeros.Len()])
	for i := range rank.Len() {
		numbers[rank.Offset+i] = float32(1e6 * float64(1+i/rank.Cols) * float64(i%rank.Cols-4))
	}
	got, exact := f.vector(numbers), &Vector64{Data: widen(numbers)}
	f.d.Do(device.Orthogonalize(got, all...))
	NewFloat64().Do(device.Orthogonalize(exact, all...))
	result, inside, bits := f.read(got), make([]bool, len(numbers)), factorBits(f.d)
	for _, m := range all {
		far, norm := 0.0, 0.0
		for i := m.Offset; i < m.Offset+m.Len(); i++ {
			inside[i] = true
			far += (float64(result[i]) - exact.Data[i]) * (float64(result[i]) - exact.Data[i])
			norm += exact.Data[i] * exact.Data[i]
		}
		most := orthogonalError(bits)
		if m.Block == rank && bits <= 8 {
			most = 2
		}
		if !(math.Sqrt(far) <= most*math.Sqrt(norm)) {
			f.Errorf("orthogonalize %d×%d: the error is %.2g of the norm, want at most %.2g", m.Rows, m.Cols,
				math.Sqrt(far/norm), most)
		}
	}
	for i, v := range numbers {
		if !inside[i] && math.Float32bits(result[i]) != math.Float32bits(v) {
			f.Errorf("orthogonalize changed number %d outside of its matrices from %v to %v", i, v, result[i])
		}
	}
	f.done()
}
