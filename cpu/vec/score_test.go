package vec

import (
	"math"
	"slices"
	"testing"

	"fspda/cpu/kernel"
	"fspda/internal/testing/kerneltest"
)

// The rank is the position of the label after a stable sort by descending logit.
func TestRank(t *testing.T) {
	for n := 1; n < 40; n++ {
		row := kerneltest.Noise("row", n)
		for j := range row {
			row[j] = float32(math.Round(float64(row[j]) * 4)) // many ties
		}
		order := make([]int, n)
		for j := range order {
			order[j] = j
		}
		slices.SortStableFunc(order, func(a, b int) int {
			switch {
			case row[a] > row[b]:
				return -1
			case row[a] < row[b]:
				return 1
			}
			return 0
		})
		for place, c := range order {
			if got := rank(row, c); got != place {
				t.Fatalf("rank of %d in %v is %d, want %d", c, row, got, place)
			}
		}
	}
}

// Score and loss agree on the cross entropy.
func TestScoreIsLoss(t *testing.T) {
	const m, n = 9, 300
	logits, labels, sums := kerneltest.Noise("logits", m*n), []float32{0, 1, 2, 3, 4, 5, 6, 7, 299}, make([]float32, 3)
	if err := score(&kernel.Args{In: [][]float32{logits, labels}, Out: [][]float32{sums},
		Dims: []int{m, n}}); err != nil {
		t.Fatal(err)
	}
	mean, _ := loss(t, n, logits, labels)
	if math.Abs(float64(sums[0]/m-mean)) > 1e-6*float64(mean) {
		t.Errorf("score says %v, the loss is %v", sums[0]/m, mean)
	}
}

func TestScoreRefusesLabels(t *testing.T) {
	if err := score(&kernel.Args{In: [][]float32{{1, 2}, {-1}}, Out: [][]float32{{0, 0, 0}},
		Dims: []int{1, 2}}); err == nil {
		t.Error("label -1 is accepted")
	}
}

func BenchmarkScore(b *testing.B) {
	const m, n = 256, 10
	o := &kernel.Args{In: [][]float32{kerneltest.Noise("logits", m*n), make([]float32, m)}, Out: [][]float32{{0, 0, 0}},
		Dims: []int{m, n}}
	b.SetBytes(4 * m * n)
	for b.Loop() {
		if err := score(o); err != nil {
			b.Fatal(err)
		}
	}
}
