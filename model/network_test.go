package model

import (
	"strings"
	"sync"
	"testing"
)

func TestNetworkSaysWhatItIs(t *testing.T) {
	net := mnist(t)
	if net.Name() != "mlp 784-100-10 sigmoid" || net.Inputs() != 784 || net.Classes() != 10 {
		t.Errorf("%q with %d inputs and %d classes", net.Name(), net.Inputs(), net.Classes())
	}
	if Train.String() != "train" || Score.String() != "score" || Predict.String() != "predict" ||
		kinds.String() != "kind 8" {
		t.Errorf("kinds are called %v, %v, %v, %v", Train, Score, Predict, kinds)
	}
}

func TestPlanErrors(t *testing.T) {
	net := mnist(t)
	for _, c := range []struct {
		batch int
		kind  Kind
		want  string
	}{
		{0, Train, "model: building mlp 784-100-10 sigmoid to train with batch 0: want at least 1 example"},
		{-3, Score, "want at least 1 example"},
		{8, kinds, "unknown kind, want one of [train score"},
		{1 << 31, Score, "layer input: input has shape (2147483648, 784)"},
	} {
		if p, err := net.Plan(c.batch, c.kind); p != nil || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("batch %d, %v: plan %v, error %v, want it to say %q", c.batch, c.kind, p, err, c.want)
		}
	}
}

// Concurrent calls of Plan return the same plans as serial calls: run with -race.
func TestPlansAreMadeConcurrently(t *testing.T) {
	net := mnist(t)
	want := map[Kind]string{Train: mustPlan(t, net, 32, Train).String(), Score: mustPlan(t, net, 32, Score).String()}
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			kind := Kind(i % 2)
			p, err := net.Plan(32, kind)
			if err != nil {
				t.Error(err)
			} else if got := p.String(); got != want[kind] {
				t.Errorf("goroutine %d made another plan:\n%s", i, got)
			}
		})
	}
	wg.Wait()
}
