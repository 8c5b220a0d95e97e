package selftest_test

import (
	"context"
	"fmt"

	"fspda/cpu"
	"fspda/selftest"
)

// The golden values of an algorithm, on the device of the host.
func ExampleTarget_Run() {
	t := selftest.Target{Device: cpu.New(), Precision: "fp32", Small: true}
	which := selftest.Selection{Only: "fspda-sa"}
	report, err := t.Run(context.Background(), which, func(r selftest.Result) { fmt.Println(r.Name, r.Verdict) })
	fmt.Println(len(report.Results), report.Failed, err)
	// Output:
	// algorithms/fspda-sa ok
	// algorithms/fspda-sa mu 0.5 ok
	// 2 0 <nil>
}
