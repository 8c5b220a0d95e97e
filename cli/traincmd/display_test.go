package traincmd

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"fspda/cli/command"
	"fspda/data"
	"fspda/dist"
	"fspda/train"
	"fspda/train/algo"
	"fspda/train/config"
	"fspda/train/metric"
)

// rowOf is an evaluation with a training loss.
func rowOf(loss, accuracy float64) train.Row {
	return train.Row{TrainScores: metric.TrainScores{TrainLossAvg: train.Num(loss)}, TestScores: metric.TestScores{
		TestAccAvg: train.Num(accuracy)}, LanguageScores: metric.LanguageScores{Perplexity: train.Num(math.NaN())}}
}

// The text before the bar has a rate in one unit and no numbers that are not known.
func TestLatest(t *testing.T) {
	s := &train.Setup{Division: data.Division{Set: &data.Set{Train: data.Split{Labels: make([]int32, 1000)}}}}
	d := &display{setup: s, meter: command.NewProgressMeter(s)}
	if got := d.latest(rowOf(math.NaN(), 0.1)); got != "acc 10.00% 0 bit" {
		t.Errorf("without a loss: %q", got)
	}
	for k := range 2 {
		d.meter.Row(train.Row{Position: metric.Position{Iteration: k, Epoch: train.Num(k)},
			Times: metric.Times{WallS: train.Num(k)}})
	}
	if got := d.latest(rowOf(0.5, 0.1)); got != "loss 0.5000 acc 10.00% 0 bit 1,000 images/s" {
		t.Errorf("%q", got)
	}
}

// Log lines for people have no JSON in them; those for programs have numbers as numbers, and leave
// out what is not known.
func TestLogLines(t *testing.T) {
	var out bytes.Buffer
	log := zap.New(zapcore.NewCore(newLineEncoder(), zapcore.AddSync(&out), zapcore.InfoLevel)).With(zap.Int("rank", 3))
	log.Info("training", zap.Strings("what", []string{"dsgd, mlp", "10 agents"}), zap.Uint64("seed", 7),
		zap.Int("threads_per_agent", 2))
	if got := out.String(); !strings.HasSuffix(got,
		" info training: rank 3, dsgd, mlp; 10 agents, seed 7, threads per agent 2\n") {
		t.Errorf("%q", got)
	}

	out.Reset()
	f := &trainFlags{json: true}
	s := &train.Setup{Division: data.Division{Set: &data.Set{}}}
	d := &display{flags: f, log: newLogger(f, &out), setup: s, meter: command.NewProgressMeter(s)}
	d.row(rowOf(math.NaN(), 0.25))
	var got map[string]any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if _, ok := got["train_loss"]; ok || got["test_acc"] != 0.25 || got["bits_total"] != 0.0 {
		t.Errorf("%s", out.String())
	}
}

// A stopped run says how it goes on, without JSON, and leaves no curves on the terminal.
func TestStopped(t *testing.T) {
	var out bytes.Buffer
	f := &trainFlags{}
	d := &display{flags: f, log: newLogger(f, &out), setup: &train.Setup{Config: config.Resolved{
		LengthKeys: config.LengthKeys{Iterations: 3000}}}}
	d.stopped("runs/x", &train.Result{Iteration: 1200})
	if got := out.String(); !strings.HasSuffix(got, "stopped at iteration 1,200 of 3,000; a checkpoint was written; "+
		"fspda train --out runs/x --resume continues\n") {
		t.Errorf("%q", got)
	}
	for _, leave := range []bool{false, true} {
		out.Reset()
		s := &terminal{w: &out, width: func() int { return 60 }}
		s.bar = newBar(&out, 100)
		s.set([]string{"a curve"})
		s.end(leave)
		if got := strings.Contains(strings.Join(visibleLines(out.String()), "\n"), "a curve"); got != leave {
			t.Errorf("the curves are there: %v, want %v", got, leave)
		}
	}
}

// A run says where it was resumed, and how many agents its evaluations look at.
func TestResumedAndLookedAt(t *testing.T) {
	var out bytes.Buffer
	f := &trainFlags{}
	given := train.Default()
	c := config.Resolved{DataKeys: given.DataKeys, LengthKeys: given.LengthKeys, BatchKeys: given.BatchKeys}
	c.Agents, c.EvalAgents = 128, 10
	s := &train.Setup{Config: c, Graph: &dist.Graph{N: 128}, Division: data.Division{Set: &data.Set{}},
		Traits: algo.SGD{}.Traits()}
	d := &display{flags: f, log: newLogger(f, &out), setup: s, from: 1500, stdout: os.Stdout,
		meter: command.NewProgressMeter(s)}
	d.begin("runs/x")
	if got := out.String(); !strings.Contains(got, "resumed at iteration 1,500 of 3,000\n") {
		t.Errorf("%q", got)
	}
	if got := d.line(rowOf(1, 0.5)); !strings.Contains(got, "worst agent of 10 looked at ") {
		t.Errorf("%q", got)
	}
	s.Config.EvalAgents = 0
	if got := d.line(rowOf(1, 0.5)); strings.Contains(got, "looked at") {
		t.Errorf("%q", got)
	}
}
