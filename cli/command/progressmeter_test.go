package command

import (
	"math"
	"testing"
	"time"

	"fspda/data"
	"fspda/train"
	"fspda/train/config"
	"fspda/train/metric"
)

// rowAt is an evaluation at an iteration, after so many seconds and local epochs.
func rowAt(iteration int, seconds, epochs float64) train.Row {
	return train.Row{Position: metric.Position{Iteration: iteration, Epoch: train.Num(epochs)},
		Times: metric.Times{WallS: train.Num(seconds)}}
}

// The time left follows the forecast, then the rows, evaluations included, and counts from where a
// run was resumed. The rate is that of examples, or of tokens of text.
func TestPace(t *testing.T) {
	set := &data.Set{Train: data.Split{Labels: make([]int32, 600)}}
	s := &train.Setup{Config: config.Resolved{LengthKeys: config.LengthKeys{Iterations: 1000}},
		Division: data.Division{Set: set}}
	p := NewProgressMeter(s)
	if p.Left(0) != 0 || p.String() != "" {
		t.Errorf("%v s left and %q of a run of which nothing is known", p.Left(0), p)
	}
	p.Expect(500, 50*time.Second)
	if got := p.Left(500); got != 50 {
		t.Errorf("%v s left, want 50", got)
	}
	p.Row(rowAt(500, 1000, 5)) // earlier parts of the run took so long
	if p.String() != "" {
		t.Errorf("a rate of %q after one row", p)
	}
	for k := 1.0; k <= 4; k++ {
		// 0.1 s of an evaluation and 0.1 s of training, for each iteration
		p.Row(rowAt(500+100*int(k), 1000+20*k, 5+2*k))
		if got, last := p.Left(500+100*int(k)), 100*(5-k); got < 0.1*last || got > 0.2*last {
			t.Errorf("after row %v: %v s left", k, got)
		}
	}
	if got := p.Left(900); got != math.Round(20-0.7*0.7*0.7*0.7*10) {
		t.Errorf("%v s left, not smoothed over the rows", got)
	}
	if got := p.String(); got != "60 images/s" { // 2 epochs of 600 in 20 s
		t.Errorf("%q", got)
	}
	s.Window = 64
	p.Row(rowAt(1000, 1100, 15))
	if got := p.String(); got != "3,840 tokens/s" || p.Left(1000) != 0 {
		t.Errorf("%q, %v s left", got, p.Left(1000))
	}
}
