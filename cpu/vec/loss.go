package vec

import (
	"slices"
	"sync"

	"fspda/cpu/kernel"
)

// softmaxCrossEntropy: loss = mean over the rows of -log softmax(logits)[label], dlogits = (softmax
// - onehot)/m; with an attr s, the onehot is smoothed.
func softmaxCrossEntropy(o *kernel.Args) error {
	if o.Attr != 0 {
		return smoothCrossEntropy(o)
	}
	m, n := o.Dims[0], o.Dims[1]
	for i := range m {
		if _, err := labelAt(o.In[1], i, n); err != nil {
			return err
		}
	}
	rows := rowLossPool.Get().(*rowLosses)
	defer rowLossPool.Put(rows)
	*rows = slices.Grow((*rows)[:0], m)[:m]
	if parts := min(o.Threads(), m*n/leastLogits); parts > 1 {
		o.Parallel(parts, rows.part)
	} else {
		rows.part(o, 0, 1)
	}
	total := 0.0
	for _, loss := range *rows {
		total += loss
	}
	o.Out[0][0] = float32(float64(total * (1 / float64(m))))
	return nil
}

// leastLogits is how many logits are worth another goroutine.
const leastLogits = 16 << 10

// rowLosses are the losses of the rows of a call, which are added in order.
type rowLosses []float64

var rowLossPool = sync.Pool{New: func() any { return new(rowLosses) }}

// part computes the losses and gradients of some rows, whose labels have been checked.
func (l rowLosses) part(o *kernel.Args, part, of int) {
	m, n := o.Dims[0], o.Dims[1]
	from, to := kernel.SplitUnits(part, of, m, 1)
	_ = eachPass(o.In[1][from:to], n, func(w *softmaxRows, i int) {
		i += from
		x, d := o.In[0][i*n:(i+w.rows)*n], o.Out[1][i*n:(i+w.rows)*n]
		e := w.exponentials(d, x, n)
		for r := range w.rows {
			l[i+r] = w.loss(r, x, n)
		}
		w.gradients(d, e, n, 1/float64(m))
	})
}

// eachPass calls pass for some rows of n logits at a time, from row i on.
func eachPass(labels []float32, n int, pass func(w *softmaxRows, i int)) error {
	w := softmaxPool.Get().(*softmaxRows)
	defer softmaxPool.Put(w)
	for i := 0; i < len(labels); i += w.rows {
		w.rows = max(1, min(len(labels)-i, rowsPerPass, vecBlock/n))
		for r := range w.rows {
			c, err := labelAt(labels, i+r, n)
			if err != nil {
				return err
			}
			w.class[r] = c
		}
		pass(w, i)
	}
	return nil
}

// softmaxRows holds intermediate results for some rows of logits.
type softmaxRows struct {
	rows  int
	class [rowsPerPass]int
	// the largest logit; subtracting it keeps the exponentials finite, and the largest of them is 1
	maximum [rowsPerPass]float32
	sum     [rowsPerPass]float64 // sums of the exponentials of logit - maximum
	scale   [rowsPerPass]float64 // 1/(rows of the batch · sum)
	atLabel [rowsPerPass]float32 // gradient at the label
	// The exponentials. They have their own buffer, since loading a number that was just stored as
	// part of a vector is slow.
	exp [vecBlock]float32
}

// rowsPerPass is the largest number of rows per pass. Together they have at most vecBlock logits,
// unless one row has more.
const rowsPerPass = 256

var softmaxPool = sync.Pool{New: func() any { return new(softmaxRows) }}

// exponentials returns exp(x - maximum), valid until the next call, and sets maximum and sum. Rows
// longer than vecBlock are written to dst, unless that is nil; their sum is over blocks of
// vecBlock logits, from left to right.
func (w *softmaxRows) exponentials(dst, x []float32, n int) []float32 {
	if n <= vecBlock {
		rowMaxima(w.maximum[:w.rows], x, n)
		expRows(w.exp[:], w.sum[:w.rows], x, w.maximum[:], n)
		return w.exp[:]
	}
	var top [1]float32
	w.maximum[0] = negativeInf
	for j := 0; j < n; j += vecBlock {
		b := x[j:min(j+vecBlock, n)]
		rowMaxima(top[:], b, len(b))
		w.maximum[0] = max(w.maximum[0], top[0])
	}
	w.sum[0] = 0
	for j := 0; j < n; j += vecBlock {
		b, d := x[j:min(j+vecBlock, n)], w.exp[:]
		if dst != nil {
			d = dst[j:]
		}
		var s [1]float64
		expRows(d, s[:], b, w.maximum[:], len(b))
		w.sum[0] += s[0]
	}
	return dst
}

// loss returns log Σ exp(row) - row[class] of row r.
func (w *softmaxRows) loss(r int, x []float32, n int) float64 {
	return logOf(w.sum[r]) - (float64(x[r*n+w.class[r]]) - float64(w.maximum[r]))
}

// gradients writes the gradients to d, given the exponentials e. The two may be the same.
func (w *softmaxRows) gradients(d, e []float32, n int, perRow float64) {
	for r, c := range w.class[:w.rows] {
		s := perRow / w.sum[r]
		// At the label p-1 is computed before rounding: it remains of the gradient when p
		// is close to 1.
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
