package pages

import "testing"

// A buffer without a whole page is unchanged; a request never changes contents.
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

// Zeros stay zero, also in reused memory, and nothing around them changes.
func TestZeros(t *testing.T) {
	for _, n := range []int{0, 1, 3000, 4096, 8192, 1 << 20, 3<<20 + 5} {
		v := make([]uint16, n+10)
		for i := range v {
			v[i] = 7
		}
		inner := v[5 : 5+n]
		clear(inner)
		Zeros(inner)
		for i, x := range v {
			want := uint16(0)
			if i < 5 || i >= 5+n {
				want = 7
			}
			if x != want {
				t.Fatalf("%d zeros: element %d is %d, want %d", n, i-5, x, want)
			}
		}
		for i := range inner {
			inner[i] = uint16(i)
		}
		for i, x := range inner {
			if x != uint16(i) {
				t.Fatalf("%d numbers written after: element %d is %d", n, i, x)
			}
		}
	}
	Zeros([]byte(nil))
}
