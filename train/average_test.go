package train

import (
	"context"
	"slices"
	"strings"
	"testing"

	"fspda/train/config"
)

// An average changes the columns of the mean model alone, and the models of the agents not at all.
// The mean model of the run, of its best row and of its checkpoint is the mean of the averages.
func TestAverage(t *testing.T) {
	for name, edit := range map[string]func(c *Config){
		"fspda-sa": func(*Config) {},
		"sgd":      func(c *Config) { c.Algo, c.Momentum = "sgd", 0.5 },
		"diloco":   func(c *Config) { c.Algo, c.LocalSteps, c.Optimizer, c.Alpha = "diloco", 5, "adamw", 0.01 },
		"storm":    func(c *Config) { c.Algo, c.Edges = "fspda-storm", "bernoulli(0.4)" },
	} {
		t.Run(name, func(t *testing.T) {
			c := small()
			edit(&c)
			plain := play(t, c, Options{})
			c.Average = "ema(0.9)"
			dir := runFolder(t)
			r, err := inFolder(t, context.Background(), c, dir, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.EqualFunc(r.Models, plain.Models, slices.Equal) {
				t.Fatal("the models of the agents differ")
			}
			if slices.Equal(r.Mean, plain.Mean) {
				t.Fatal("the mean model is that of training")
			}
			for k, row := range r.Rows {
				old := plain.Rows[k]
				same := row.TestAccMean == old.TestAccMean && row.TestAccMin == old.TestAccMin &&
					row.TrainLossWorst == old.TrainLossWorst && row.Consensus == old.Consensus &&
					row.BitsTotal == old.BitsTotal
				if !same {
					t.Errorf("row %d: columns of the agents are %+v, want %+v", k, row, old)
				}
				if k == 0 != (row.TestLossAvg == old.TestLossAvg) {
					t.Errorf("row %d: the loss of the mean model is %v, and %v in training", k, row.TestLossAvg,
						old.TestLossAvg)
				}
			}
			saved, err := OpenSaved(dir)
			if err != nil {
				t.Fatal(err)
			}
			if x, _, err := saved.Mean(nil); err != nil || !slices.Equal(x, r.Mean) {
				t.Errorf("the checkpoint has another mean model, %v", err)
			}
			if x, _, err := saved.Agent(1); err != nil || !slices.Equal(x, r.Models[1]) {
				t.Errorf("the checkpoint has another model of agent 1, %v", err)
			}
			if err := saved.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Batch norm of an average is measured anew in each row, since the statistics of no agent belong
// to it.
func TestAverageOfNorms(t *testing.T) {
	c := withNorm()
	c.Average = "ema(0.8)"
	m := newNormed(c.WeightDecay)
	s, r := playNormed(t, c, m, Options{})
	acc, _ := scoreWith(t, m, r.Mean, measured(t, s, m))
	if last := r.Rows[len(r.Rows)-1]; float64(last.TestAccAvg) != acc {
		t.Errorf("accuracy %v of the mean model, want %v", last.TestAccAvg, acc)
	}
	recalibrated := c
	recalibrated.BN = config.BNRecalibrate
	if _, same := playNormed(t, recalibrated, newNormed(c.WeightDecay), Options{}); trace(t, same) != trace(t, r) {
		t.Error("rows with bn pooled differ from those with bn recalibrate")
	}
	c.BN = config.BNLocal
	if _, err := c.Resolve(labSet, m); err == nil || !strings.Contains(err.Error(), "use bn recalibrate") {
		t.Errorf("bn local: %v", err)
	}
	c = small()
	c.Algo, c.Average = "fspda-async", "tail(3)"
	if _, err := c.Resolve(labSet, labModel(t, c)); err == nil || !strings.Contains(err.Error(), "no iterations") {
		t.Errorf("fspda-async: %v", err)
	}
}

// A schedule-free run evaluates the average of its optimizer, and has the same bits when it is
// resumed. What does not fit it is refused.
func TestScheduleFree(t *testing.T) {
	for name, edit := range map[string]func(c *Config){
		"sgd": func(c *Config) { c.Algo, c.Optimizer = "sgd", "schedule-free-sgd" },
		"local-sgd": func(c *Config) {
			c.Algo, c.LocalSteps, c.Optimizer, c.Alpha = "local-sgd", 5, "schedule-free-adamw", 0.01
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := small()
			c.WarmupT = 7
			edit(&c)
			want := play(t, c, Options{})
			if slices.Equal(want.Mean, want.Models[0]) {
				t.Error("the mean model is the model that trains")
			}
			if first, last := want.Rows[0].TestLossAvg, want.Rows[len(want.Rows)-1].TestLossAvg; !(last < 0.95*first) {
				t.Errorf("the loss fell from %v to %v", first, last)
			}
			dir := runFolder(t)
			ctx, stop := context.WithCancel(context.Background())
			if _, err := inFolder(t, ctx, c, dir, Options{OnStep: func(at int) {
				if at == 23 {
					stop()
				}
			}}); err != nil {
				t.Fatal(err)
			}
			stop()
			got, err := inFolder(t, context.Background(), c, dir, Options{})
			if err != nil || got.First == 0 || trace(t, got) != trace(t, want) {
				t.Errorf("resumed at %d, it has other bits; %v", got.First, err)
			}
		})
	}
	for words, edit := range map[string]func(c *Config){
		"takes the place of a schedule":   func(c *Config) { c.Schedule, c.Warmup = "cosine", 1 },
		"use average none":                func(c *Config) { c.Average = "tail(3)" },
		"gradients would be taken at z":   func(c *Config) { c.Beta1 = 0 },
		"takes this one (local-sgd, sgd)": func(c *Config) { c.Algo = "dsgd" },
		"leaves the model z": func(c *Config) {
			c.Algo, c.Params = "local-sgd", config.Params{"moment_rounds": 2}
		},
		"does not use beta2 and eps":   func(c *Config) { c.Beta2 = 0.9 },
		"warm up for fewer iterations": func(c *Config) { c.WarmupT = 60; c.SetExplicit("warmup_iterations") },
	} {
		c := small()
		c.Algo, c.Optimizer = "sgd", "schedule-free-sgd"
		m := labModel(t, c)
		edit(&c)
		if _, err := c.Resolve(labSet, m); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%v, want %q", err, words)
		}
	}
}
