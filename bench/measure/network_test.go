package measure_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"fspda/bench/measure"
	"fspda/device"
)

// Shares compare a gradient and a step with products of the same turn that have as many operations,
// and are the median of the turns: turns whose products are slow do not change them.
func TestNetworkShares(t *testing.T) {
	const side, gradient, step, product = measure.ProductSide, 4 * time.Millisecond, 8 * time.Millisecond,
		time.Millisecond
	code := &device.Code{Name: "n", Batch: 1, Dim: 1, FLOPs: 2 * 2 * side * side * side}
	synctest.Test(t, func(t *testing.T) {
		products := 0
		r, err := measure.Network(t.Context(), measure.NetworkOptions{
			Code: code, Threads: 1, Each: time.Second,
			Load: func() (func() ([]time.Duration, error), error) {
				return func() ([]time.Duration, error) { time.Sleep(gradient); return nil, nil }, nil
			},
			Product: func() error {
				if products++; products%48 < 16 { // two of six turns
					time.Sleep(3 * product)
				}
				time.Sleep(product)
				return nil
			},
			Train: func(_ context.Context, atStep func() bool) error {
				for atStep() {
					time.Sleep(step)
				}
				return nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		if r.Fastest != gradient || r.Step != step || r.Share != 0.5 || r.StepShare != 0.25 {
			t.Errorf("a gradient of %v with share %v, want %v and 0.5; a step of %v with share %v, want %v and 0.25",
				r.Fastest, r.Share, gradient, r.Step, r.StepShare, step)
		}
		if want := code.FLOPs / 2 / product.Seconds() / 1e9; r.Product != want {
			t.Errorf("products have %v GFLOP/s, want %v", r.Product, want)
		}
	})
}
