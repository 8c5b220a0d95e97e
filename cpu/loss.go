package cpu

import "sync"

// softmaxCrossEntropy: loss = mean over the rows of -log softmax(logits)[label], dlogits = (softmax
// - onehot)/m; with an attr s, the onehot is smoothed.
func softmaxCrossEntropy(o *operands) error {
	if o.attr != 0 {
		return smoothCrossEntropy(o)
	}
	logits, labels, loss, dlogits := o.in[0], o.in[1], o.out[0], o.out[1]
	m, n := o.dims[0], o.dims[1]
	w := rowWorks.Get().(*rowWork)
	defer rowWorks.Put(w)
	total, perRow := 0.0, 1/float64(m)
	for i := 0; i < m; i += w.rows {
		w.begin(m-i, n)
		x, d := logits[i*n:(i+w.rows)*n], dlogits[i*n:(i+w.rows)*n]
		if err := w.labels(labels, i, n); err != nil {
			return err
		}
		e := w.exponentials(d, x, n)
		total = w.addLosses(total, x, n)
		w.gradients(d, e, n, perRow)
	}
	loss[0] = float32(float64(total * perRow))
	return nil
}

// rowWork is what is worked out for some rows of logits at a time.
type rowWork struct {
	rows  int
	class [rowsAtOnce]int
	// the largest logit; subtracting it keeps the exponentials finite, and the largest of them is 1
	top     [rowsAtOnce]float32
	sum     [rowsAtOnce]float64 // of the exponentials of logit - top
	scale   [rowsAtOnce]float64 // 1/(rows of the batch · sum)
	atLabel [rowsAtOnce]float32 // gradient at the label
	// the exponentials: a place of their own, since to read what was written as part of a vector
	// just before takes long
	exp [vecBlock]float32
}

// rowsAtOnce is how many rows are worked on at a time. They have vecBlock logits together, or one
// row has more.
const rowsAtOnce = 256

var rowWorks = sync.Pool{New: func() any { return new(rowWork) }}

// begin takes as many of the rows that are left as there is room for.
func (w *rowWork) begin(left, n int) { w.rows = max(1, min(left, rowsAtOnce, vecBlock/n)) }

// labels looks up the classes of row i and those after it.
func (w *rowWork) labels(labels []float32, i, n int) error {
	for r := range w.rows {
		c, err := labelAt(labels, i+r, n)
		if err != nil {
			return err
		}
		w.class[r] = c
	}
	return nil
}

// exponentials returns exp(x - top), which is good until it is called again, and fills in top and
// sum. Rows longer than vecBlock are written to dst, unless that is nil; the sum of one is that of
// its blocks of vecBlock logits, from left to right.
func (w *rowWork) exponentials(dst, x []float32, n int) []float32 {
	if n <= vecBlock {
		rowTops(w.top[:w.rows], x, n)
		expRows(w.exp[:], w.sum[:w.rows], x, w.top[:], n)
		return w.exp[:]
	}
	var top [1]float32
	w.top[0] = negativeInf
	for j := 0; j < n; j += vecBlock {
		b := x[j:min(j+vecBlock, n)]
		rowTops(top[:], b, len(b))
		w.top[0] = max(w.top[0], top[0])
	}
	w.sum[0] = 0
	for j := 0; j < n; j += vecBlock {
		b, d := x[j:min(j+vecBlock, n)], w.exp[:]
		if dst != nil {
			d = dst[j:]
		}
		var s [1]float64
		expRows(d, s[:], b, w.top[:], len(b))
		w.sum[0] += s[0]
	}
	return dst
}

// addLosses adds log Σ exp(row) - row[class] of each row to total.
func (w *rowWork) addLosses(total float64, x []float32, n int) float64 {
	for r, c := range w.class[:w.rows] {
		total += logOf(w.sum[r]) - (float64(x[r*n+c]) - float64(w.top[r]))
	}
	return total
}

// gradients writes the gradients to d, where e are the exponentials. The two may be the same.
func (w *rowWork) gradients(d, e []float32, n int, perRow float64) {
	for r, c := range w.class[:w.rows] {
		s := perRow / w.sum[r]
		// The label's p-1 is taken before rounding: it is what remains of the gradient when p is
		// close to 1.
		w.atLabel[r], w.scale[r] = float32((float64(e[r*n+c])-w.sum[r])*s), s
	}
	if n <= vecBlock {
		timesRows(d, e, w.scale[:w.rows], n)
	} else {
		for j := 0; j < n; j += vecBlock {
			timesRows(d[j:], e[j:], w.scale[:1], min(vecBlock, n-j))
		}
	}
	for r, c := range w.class[:w.rows] {
		d[r*n+c] = w.atLabel[r]
	}
}
