package simnet_test

import (
	"fmt"

	"fspda/train/simnet"
)

// Two agents compute for 10 ms and are 50 ms apart. A message of 1 Mbit over 10 Mbit/s takes 100
// ms.
func Example() {
	links, err := simnet.Parse([]byte("{gradient_ms: 10, default: {latency_ms: 50, bandwidth_mbit: 10}}"), 2, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	const seed = 1
	a, b := simnet.NewClock(links, seed, 0, nil), simnet.NewClock(links, seed, 1, nil)
	for t := range 2 {
		toB, toA := a.Post(t, 1, 1e6), b.Post(t, 0, 1e6)
		a.Gradient(t)
		b.Gradient(t)
		a.Receive(toA)
		b.Receive(toB)
		fmt.Printf("iteration %d ends at %.2f s\n", t, max(a.End(), b.End()))
	}
	// Output:
	// iteration 0 ends at 0.15 s
	// iteration 1 ends at 0.30 s
}
