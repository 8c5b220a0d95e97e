package disttest_test

import (
	"context"
	"errors"
	"fmt"

	"fspda/dist"
	"fspda/internal/testing/disttest"
)

// The seed cuts an edge at half of its iterations. Both ends learn about it and continue.
func ExampleSim() {
	net := disttest.NewSim(2, 1, disttest.Faults{Cut: 0.5, MaxDelay: 5})
	ctx := context.Background()
	for t := range 6 {
		_ = net.Send(ctx, dist.Message{T: t, From: 0, To: 1})
		_ = net.Send(ctx, dist.Message{T: t, From: 1, To: 0})
		_, left := net.Recv(ctx, 0, 1, t)
		_, right := net.Recv(ctx, 1, 0, t)
		fmt.Println(t, errors.Is(left, dist.ErrIdle), errors.Is(right, dist.ErrIdle))
	}
	// Output:
	// 0 false false
	// 1 false false
	// 2 true true
	// 3 false false
	// 4 false false
	// 5 false false
}
