package dist

import "testing"

// If k divides d, block b gives exactly one coordinate.
func TestOneInEachBlock(t *testing.T) {
	m := mustMask(t, "stratified", 0.1, []int{200})
	var dst []uint32
	for k := range 500 {
		dst = m.Draw(dst, k, 0, 1)
		for b, c := range dst {
			if int(c)/10 != b {
				t.Fatalf("t=%d: coordinate %d of block %d", k, c, b)
			}
		}
	}
}
