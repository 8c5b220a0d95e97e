package algo_test

import (
	"fmt"

	"fspda/device"
	"fspda/device/devicetest"
	"fspda/train/algo"
)

// Two agents with optima 1 and 5 communicate every fourth iteration and agree on 3.
func ExampleSA() {
	sa := algo.SA{Gamma: 0.25, Beta: 0.5}
	dev := devicetest.NewFloat64()
	want := []float64{1, 5}
	agents := []*algo.State{algo.NewState(sa, dev, dev.NewVector(1)), algo.NewState(sa, dev, dev.NewVector(1))}
	at := func(i int) []float64 { return agents[i].X.(*devicetest.Vector64).Data }
	for t := range 4000 {
		rounds := make([]algo.Round, 2)
		for i := range rounds {
			r := &rounds[i]
			*r = algo.Round{T: t, Self: i, Alpha: 0.1, Eta: 0.05, Acquire: dev.NewVector}
			if t%4 == 0 {
				r.Links = []algo.Link{{Peer: 1 - i, Len: 1}}
			}
			r.Grad = func(dst, x device.Vector) error { // of ½(x - want)²
				dst.(*devicetest.Vector64).Data[0] = at(i)[0] - want[i]
				return nil
			}
			r.Post = func(link int, v ...device.Vector) { r.Links[link].Sent = v }
			if err := sa.Local(agents[i], r); err != nil {
				fmt.Println(err)
			}
		}
		for i := range rounds {
			if t%4 == 0 {
				rounds[i].Links[0].Received = rounds[1-i].Links[0].Sent
			}
			if err := sa.Mix(agents[i], &rounds[i]); err != nil {
				fmt.Println(err)
			}
		}
	}
	fmt.Printf("%.2f %.2f\n", at(0)[0], at(1)[0])
	// Output: 3.00 3.00
}
