package metric_test

import (
	"fmt"
	"math"

	"fspda/train/metric"
)

// A row writes numbers that are undefined as empty cells.
func Example() {
	var r metric.Row
	r.Iteration, r.TestAccAvg, r.TestLossAvg = 100, 0.5, metric.Num(math.NaN())
	cells, columns := r.CSV(), metric.Columns()
	fmt.Println(columns[:3])
	fmt.Println(cells[:4], len(columns) == len(r.Values()))
	// Output:
	// [iteration epoch train_loss_worst]
	// 100, true
}
