package theory_test

import (
	"fmt"

	"fspda/bench/theory"
)

// The slope of y = 3/x² is the same for two seeds, so its interval has no width.
func ExampleFitSlope() {
	x := []float64{1, 2, 4}
	y := []float64{3, 0.75, 0.1875}
	s := theory.FitSlope(x, [][]float64{y, y})
	fmt.Printf("%.2f ± %.2f, %v\n", s.Value, s.Half, s.Contains(-2))
	// Output: -2.00 ± 0.00, true
}
