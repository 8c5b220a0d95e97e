package membership_test

import (
	"fmt"

	"fspda/train/membership"
)

// Agent 2 leaves at iteration 20, and a new agent takes its slot at iteration 50.
func ExampleParse() {
	l, err := membership.Parse([]byte(`{"epoch":1,"at":20,"left":[2]}
{"epoch":2,"at":50,"joined":[2]}
`), 3)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, t := range []int{0, 20, 50} {
		fmt.Println("iteration", t, "members", l.Members(t))
	}
	// Output:
	// iteration 0 members [0 1 2]
	// iteration 20 members [0 1]
	// iteration 50 members [0 1 2]
}
