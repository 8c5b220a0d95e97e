package conv

import (
	"testing"
	"unsafe"

	"fspda/cpu/kernel"
	"fspda/cpu/tile"
)

// The tiles together prefetch every line, once if there are enough tiles, and then nothing.
func TestPrefetcher(t *testing.T) {
	const products = 10
	a, b, factor := make([]float32, 1000), make([]float32, 300), make([]float32, 1)
	for _, tiles := range []int{1, 8, 9, 20, 100} {
		f, asked := newPrefetcher(a, b, tiles), map[uintptr]bool{}
		args := tile.Args{A: &factor[0]}
		for range max(tiles, 20) {
			f.setNext(&args, products)
			for p := range products {
				asked[(uintptr(unsafe.Pointer(args.A))+uintptr(args.Ahead+p*args.Step))/kernel.CacheLine] = true
			}
		}
		for _, v := range [][]float32{a, b} {
			for i := 0; i < len(v); i += kernel.CacheLine / 4 {
				if at := uintptr(unsafe.Pointer(&v[i])) / kernel.CacheLine; !asked[at] && tiles >= 8 {
					t.Fatalf("%d tiles: number %d of %d is not prefetched", tiles, i, len(v))
				}
			}
		}
		if f.setNext(&args, products); args.Ahead != 0 || args.Step != 0 {
			t.Errorf("%d tiles: one more prefetches %d + p·%d", tiles, args.Ahead, args.Step)
		}
	}
}
