package pages_test

import (
	"fmt"

	"fspda/internal/pages"
)

// A buffer for random access.
func ExampleLarge() {
	buf := make([]byte, 8<<20)
	pages.Large(buf)
	buf[1<<20] = 7
	fmt.Println(buf[1<<20], buf[1<<20+1])
	// Output: 7 0
}
