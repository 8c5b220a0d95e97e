package measure_test

import (
	"fmt"
	"time"

	"fspda/bench/measure"
)

// A report prints itself.
func ExampleStepReport() {
	r := measure.StepReport{What: "fspda-sa, mlp, batch 256", Dim: 79510, Agents: 10, Iterations: 500,
		Step: 1100 * time.Microsecond, Gradient: 1000 * time.Microsecond, Vectors: 60 * time.Microsecond,
		Batches: 20 * time.Microsecond, Rest: 20 * time.Microsecond,
		FLOPs: 80e6, Rate: 80, GEMM: 100, Fraction: 0.8, RestShare: 0.018}
	fmt.Print(r)
	// Output:
	// fspda-sa, mlp, batch 256: d = 79510, 10 agents, one core, 500 iterations measured
	//   agent step           1100.0 µs
	//     gradient           1000.0 µs   80.0 MFLOP at 80.0 GFLOP/s
	//     vector kernels       60.0 µs
	//     batches              20.0 µs   pixels to numbers
	//     rest                 20.0 µs   1.80 % of the step (masks, exchange, scheduling; target under 3 %)
	//   matrix products       100.0 GFLOP/s alone, one after the other, in this run
	//   fraction               80.0 %   of that rate reached by the gradient
}
