package units_test

import (
	"fmt"

	"fspda/internal/units"
)

func Example() {
	fmt.Println(units.SI(999_999, "bit"), units.SI(117.3e6, "B"))
	fmt.Println(units.Percent(0.9742), units.Duration(3720), units.Round(0.123456, 4))
	// Output:
	// 1 Mbit 117 MB
	// 97.42 % 1 h 02 min 0.1235
}
