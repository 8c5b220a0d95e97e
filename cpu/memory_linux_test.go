package cpu

import "testing"

// What is too short to have a whole page, or ends within one, is left alone; a request never changes the numbers.
func TestAdviseLarge(t *testing.T) {
	for _, n := range []int{0, 1, 100, 1024, 3000, largeVector} {
		v := noise("large", n)
		want := append([]float32{}, v...)
		adviseLarge(v)
		for i, w := range want {
			if v[i] != w {
				t.Fatalf("%d numbers: element %d is %v, want %v", n, i, v[i], w)
			}
		}
	}
}
