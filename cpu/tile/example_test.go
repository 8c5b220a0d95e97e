package tile_test

import (
	"fmt"

	"fspda/cpu/tile"
)

// One tile of a product of 1×2 and 2×3 numbers.
func ExamplePlain() {
	a, b := tile.RowMajor([]float32{1, 10}, 2), tile.RowMajor([]float32{1, 2, 3, 4, 5, 6}, 3)
	c := make([]float32, 3)
	tile.Plain(1, 3, 2, 1, a, b, 0, tile.RowMajor(c, 3))
	fmt.Println(c)
	// Output: [41 52 63]
}
