package model

import (
	"math"

	"fspda/device"
)

// top is the k of the top-k hits.
const top = 5

// scores are the sums over a batch.
type scores struct{ loss, hits, hits5 float64 }

// scoreLogits returns the sums over a batch and the derivative of the mean cross entropy by the
// logits, rows of classes: (softmax - onehot)/N. A hit is a row whose label has the largest logit;
// the lower index wins ties, and a row with a NaN is no hit. Loss and derivative are for both
// classes of examples that mix gives a second one.
func scoreLogits(logits []float32, labels []int32, mix []device.Mix, classes int) (s scores, slope []float32) {
	slope = make([]float32, len(logits))
	n := float64(len(labels))
	for i, c := range labels {
		row, out := logits[i*classes:(i+1)*classes], slope[i*classes:(i+1)*classes]
		largest := math.Inf(-1)
		before, known := 0, true
		for j, v := range row {
			largest = max(largest, float64(v))
			known = known && v == v
			if v > row[c] || v == row[c] && j < int(c) {
				before++
			}
		}
		sum := 0.0
		for _, v := range row {
			sum += math.Exp(float64(v) - largest)
		}
		for j, v := range row {
			out[j] = float32(math.Exp(float64(v)-largest) / sum / n)
		}
		if mix == nil || mix[i].Weight == 1 {
			out[c] -= float32(1 / n)
			s.loss += largest + math.Log(sum) - float64(row[c])
		} else {
			other, w := mix[i].Partner, float64(mix[i].Weight)
			out[c] -= float32(w / n)
			out[other] -= float32((1 - w) / n)
			s.loss += largest + math.Log(sum) - float64(w*float64(row[c])) - float64((1-w)*float64(row[other]))
		}
		if known && before == 0 {
			s.hits++
		}
		if known && before < top {
			s.hits5++
		}
	}
	return s, slope
}
