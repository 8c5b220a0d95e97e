package kernels

import "math"

var _ = define("loss.cu",
	"softmax_cross_entropy row_loss:p dlogits:p logits:p labels:p bad:p rows:i m:i n:i stride:l s:d",
	"softmax_cross_entropy_mixed row_loss:p dlogits:p logits:p labels:p bad:p m:i n:i s:d",
	"score row_loss:p hits:p logits:p labels:p bad:p m:i n:i",
	"score_sums sums:p loss:p hits:p",
)

var _ = defineEach("loss_half.cu", halfElements,
	"wide_cross_entropy_%s row_loss:p dlogits:p logits:p labels:p bad:p m:i n:i padded:i first_row:i s:d scaler:p")

var _ = define("loss_half.cu", "mean_loss loss:p row_loss:p m:i")

// NoBadRow is the initial value of the first bad row: no label was bad.
const NoBadRow = math.MaxUint32

// rowsOver returns the geometry of half a warp per row.
func rowsOver(m int) Launch { return blocks(16*m, 128) }

// SoftmaxCrossEntropy is device.SoftmaxCrossEntropy with label smoothing s: it writes the mean loss
// (float32) and the gradient dlogits. rowLoss is scratch of m float64 numbers. bad (uint32) must be
// NoBadRow; it becomes the first row whose label is not a class, and then the results are
// undefined.
func SoftmaxCrossEntropy(loss, dlogits, logits, labels, rowLoss, bad Address, m, n int, s float64) []Call {
	return softmaxCrossEntropies(1, 0, loss, dlogits, logits, labels, rowLoss, bad, m, n, s)
}

// SoftmaxCrossEntropyMixed is device.SoftmaxCrossEntropyMixed, with the arguments of
// SoftmaxCrossEntropy.
func SoftmaxCrossEntropyMixed(loss, dlogits, logits, labels, rowLoss, bad Address, m, n int, s float64) []Call {
	return []Call{
		call("softmax_cross_entropy_mixed", rowsOver(m), rowLoss, dlogits, logits, labels, bad, m, n, s),
		call("dot_sum", blocks(threads, threads), Address(0), loss, rowLoss, m, 1/float64(m), 1),
	}
}

// softmaxCrossEntropies is SoftmaxCrossEntropy for several agents with m rows each. Their losses,
// gradients and logits are stride numbers apart; their labels and row losses are contiguous.
func softmaxCrossEntropies(agents, stride int, loss, dlogits, logits, labels, rowLoss, bad Address, m, n int,
	s float64) []Call {
	return []Call{
		call("softmax_cross_entropy", rowsOver(agents*m), rowLoss, dlogits, logits, labels, bad, agents*m, m, n, stride,
			s),
		call("dot_sum", blocks(agents*threads, threads), Address(0), loss, rowLoss, m, 1/float64(m), stride),
	}
}

// Score is device.Score: it writes three float32 numbers to sums. rowLoss is scratch of m+1 float64
// numbers. hits is two uint32 that are zero before and after. bad is as in SoftmaxCrossEntropy.
func Score(sums, logits, labels, rowLoss, hits, bad Address, m, n int) []Call {
	total := rowLoss + 8*Address(m)
	return []Call{
		call("score", rowsOver(m), rowLoss, hits, logits, labels, bad, m, n),
		call("dot_sum", blocks(threads, threads), total, Address(0), rowLoss, m, 1.0, 1),
		call("score_sums", blocks(1, 32), sums, total, hits),
	}
}

// wideLossThreads is the threads of a row of WideLoss: WIDE_THREADS of loss_half.cu.
const wideLossThreads = 1024

// WideLoss is device.SoftmaxCrossEntropy for many classes, of an Element of 16 bits: M rows of N
// logits, padded to Padded numbers, a multiple of 8. It computes in float32.
type WideLoss struct {
	Element      Element
	M, N, Padded int
	Smoothing    float64

	Logits, Labels Address
	Loss, DLogits  Address // DLogits may be Logits; its padding becomes 0
	RowLoss        Address // scratch of M float64 numbers
	Bad            Address // the first row with an invalid label, see SoftmaxCrossEntropy
	Scaler         Address // whose scale multiplies DLogits; 0: none
}

// Calls computes Loss, the mean, and DLogits.
func (w *WideLoss) Calls() []Call { return []Call{w.Rows(0, w.M), w.Mean()} }

// Rows computes RowLoss and DLogits of n rows. Logits and DLogits have these only.
func (w *WideLoss) Rows(first, n int) Call {
	return call(w.Element.name("wide_cross_entropy"), blocks(n*wideLossThreads, wideLossThreads), w.RowLoss, w.DLogits,
		w.Logits, w.Labels, w.Bad, w.M, w.N, w.Padded, first, w.Smoothing, w.Scaler)
}

// Mean computes Loss from RowLoss.
func (w *WideLoss) Mean() Call {
	return call("mean_loss", blocks(wideLossThreads, wideLossThreads), w.Loss, w.RowLoss, w.M)
}
