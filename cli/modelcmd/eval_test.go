package modelcmd

import (
	"math"
	"testing"
)

// The scores of four examples of three classes, by hand.
func TestScores(t *testing.T) {
	s := newScores("m", 3)
	s.add(0, []float64{0.7, 0.2, 0.1})
	s.add(0, []float64{0.68, 0.12, 0.2})
	s.add(1, []float64{0.69, 0.2, 0.11}) // wrong, in the same bin: confidence 0.69, accuracy 2/3
	s.add(2, []float64{0, 0.5, 0.5})     // a tie goes to the first
	s.finish()
	for name, pair := range map[string][2]float64{
		"accuracy": {s.Accuracy, 0.5}, "top-5": {s.Top5, 1},
		"loss": {s.Loss, -(math.Log(0.7) + math.Log(0.68) + math.Log(0.2) + math.Log(0.5)) / 4},
		"ece":  {s.ECE, (math.Abs(2-2.07) + 0.5) / 4}, "class 0": {*s.PerClass[0], 1}, "class 1": {*s.PerClass[1], 0},
		"bin": {s.Calibration[10].Accuracy, 2. / 3},
	} {
		if math.Abs(pair[0]-pair[1]) > 1e-12 {
			t.Errorf("%s: %v, want %v", name, pair[0], pair[1])
		}
	}
	if s.Confusion[0][0] != 2 || s.Confusion[1][0] != 1 || s.Confusion[2][1] != 1 {
		t.Errorf("confusion %v", s.Confusion)
	}
}
