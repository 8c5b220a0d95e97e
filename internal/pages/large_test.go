package pages

import "testing"

// What is too short to have a whole page, or ends within one, is left alone; a request never changes what is there.
func TestLarge(t *testing.T) {
	for _, n := range []int{0, 1, 100, 1024, 3000, 4096, 4097, 8192, 1 << 20, 3<<20 + 5} {
		for _, skip := range []int{0, 1, 5} {
			if skip > n {
				continue
			}
			v := make([]uint16, n)
			for i := range v {
				v[i] = uint16(3*i + 1)
			}
			Large(v[skip:])
			for i := range v {
				if v[i] != uint16(3*i+1) {
					t.Fatalf("%d numbers without %d: element %d is %v", n, skip, i, v[i])
				}
			}
		}
	}
	Large([]byte(nil))
}
