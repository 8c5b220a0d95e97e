//go:build !noasm

package cpu

import (
	"testing"
	"unsafe"
)

// Tiles together ask for every line of what will be needed, once if there are enough of them, and
// then for nothing new.
func TestFeed(t *testing.T) {
	const products = 10
	a, b, factor := make([]float32, 1000), make([]float32, 300), make([]float32, 1)
	for _, tiles := range []int{1, 8, 9, 20, 100} {
		f, asked := feedOf(a, b, tiles), map[uintptr]bool{}
		args := tileArgs{a: &factor[0]}
		for range max(tiles, 20) {
			f.give(&args, products)
			for p := range products {
				asked[(uintptr(unsafe.Pointer(args.a))+uintptr(args.ahead+p*args.step))/line] = true
			}
		}
		for _, v := range [][]float32{a, b} {
			for i := 0; i < len(v); i += line / 4 {
				if at := uintptr(unsafe.Pointer(&v[i])) / line; !asked[at] && tiles >= 8 {
					t.Fatalf("%d tiles: nobody asks for number %d of %d", tiles, i, len(v))
				}
			}
		}
		if f.give(&args, products); args.ahead != 0 || args.step != 0 {
			t.Errorf("%d tiles: one more asks for %d + p·%d", tiles, args.ahead, args.step)
		}
	}
}
