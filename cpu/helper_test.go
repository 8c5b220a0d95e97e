package cpu

import "fspda/internal/rng"

// randomBytes are examples of bytes that lie in any order, some of them twice.
func randomBytes(rows, cols int) (coded, []float32) {
	s := rng.New(3, "coded", uint64(rows), uint64(cols))
	v := coded{bytes: make([]uint8, (rows+3)*cols), scale: 0.0123, shift: -0.77}
	for i := range v.bytes {
		v.bytes[i] = uint8(s.IntN(256))
	}
	for i := range rows + spareRows {
		v.at = append(v.at, s.IntN(rows+3)*cols)
		if i >= rows {
			v.at[i] = v.at[rows-1]
		}
	}
	numbers := make([]float32, rows*cols)
	decodeRowsGo(numbers, cols, v, rows, cols)
	return v, numbers
}

const raceDetector = false
