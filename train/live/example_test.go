package live_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"fspda/device"
	"fspda/device/devicetest"
	"fspda/dist"
	"fspda/internal/testing/disttest"
	"fspda/train/algo"
	"fspda/train/live"
)

var dev = devicetest.NewFloat64()

// wants is a trainer with the objective (x-b)²/2.
type wants float32

func (b wants) Gradient(_ context.Context, dst, x device.Vector) error {
	time.Sleep(100 * time.Microsecond)
	v := make([]float32, 1)
	dev.Read(v, x)
	dev.Write(dst, []float32{v[0] - float32(b)})
	return nil
}
func (wants) Applied()                       {}
func (wants) Advanced(live.Snapshot) bool    { return false }
func (wants) Finished(live.Snapshot)         {}
func (wants) Exchanged(peer, valuesSent int) {}
func (wants) Called()                        {}

// Two agents want 1 and 5. They exchange whenever the clock of their edge rings, and agree on 3.
func Example() {
	net := disttest.NewNetwork(2, 1, 0)
	mask, err := dist.ParseMask("all", 1, []int{1}, 1)
	if err != nil {
		panic(err)
	}
	method := algo.Async{SA: algo.SA{Gamma: 0.5, Beta: 1}, Protocol: algo.Protocol{Coef: algo.Inverse, CMax: 10}}
	var states [2]*algo.State
	var all sync.WaitGroup
	for i := range states {
		states[i] = algo.NewState(method, dev, dev.NewVector(1))
		a := live.New(live.Options{Self: i, Agents: 2, Neighbours: []int{1 - i}, Edges: 1, Until: 600,
			Algo: method, Alpha: 0.02, Eta: 0.008, Mask: mask, Seed: 1, CallRate: 1,
			Network: net.Start(i), State: states[i], Trainer: wants(1 + 4*i)})
		all.Go(func() {
			defer a.Close()
			if err := a.Run(context.Background()); err != nil {
				panic(err)
			}
		})
	}
	all.Wait()
	for _, s := range states {
		x := make([]float32, 1)
		dev.Read(x, s.X)
		fmt.Printf("%.0f\n", x[0])
	}
	// Output:
	// 3
	// 3
}
