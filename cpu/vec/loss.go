package vec

import (
	"slices"
	"sync"

	"fspda/cpu/kernel"
)

// softmaxCrossEntropy: loss = mean over the rows of -log softmax(logits)[label], dlogits = (softmax
// - onehot)/m; with an attr s, the onehot is smoothed. The labels of softmaxCrossEntropyMixed have
// three numbers a row, of which targetAt makes a target.
func softmaxCrossEntropy(o *kernel.Args) error {
	if o.Attr != 0 {
		return smoothCrossEntropy(o)
	}
	m, n := o.Dims[0], o.Dims[1]
	for i := range m {
		if _, err := targetAt(o.In[1], i, len(o.In[1])/m, n); err != nil {
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
	each := len(o.In[1]) / m
	_ = eachPass(o.In[1][from*each:to*each], to-from, n, func(w *softmaxRows, i int) {
		i += from
		x, d := o.In[0][i*n:(i+w.rows)*n], o.Out[1][i*n:(i+w.rows)*n]
		e := w.exponentials(d, x, n)
		for r := range w.rows {
			l[i+r] = w.loss(r, x, n)
		}
		w.gradients(d, e, n, 1/float64(m))
	})
}

// eachPass calls pass for some of m rows of n logits at a time, from row i on.
func eachPass(labels []float32, m, n int, pass func(w *softmaxRows, i int)) error {
	w, each := softmaxPool.Get().(*softmaxRows), len(labels)/max(m, 1)
	defer softmaxPool.Put(w)
	for i := 0; i < m; i += w.rows {
		w.rows = max(1, min(m-i, rowsPerPass, vecBlock/n))
		for r := range w.rows {
			c, err := targetAt(labels, i+r, each, n)
			if err != nil {
				return err
			}
			w.target[r] = c
		}
		pass(w, i)
	}
	return nil
}

// softmaxRows holds intermediate results for some rows of logits.
type softmaxRows struct {
	rows   int
	target [rowsPerPass]target
	// the largest logit; subtracting it keeps the exponentials finite, and the largest of them is 1
	maximum [rowsPerPass]float32
	sum     [rowsPerPass]float64 // sums of the exponentials of logit - maximum
	scale   [rowsPerPass]float64 // 1/(rows of the batch · sum)
	atLabel [rowsPerPass]float32 // gradient at the label
	atOther [rowsPerPass]float32 // gradient at the second class
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
	return logOf(w.sum[r]) - w.ahead(r, x[r*n:(r+1)*n])
}

// ahead returns row[class] - maximum of row r, or the mean of both classes.
func (w *softmaxRows) ahead(r int, row []float32) float64 {
	t, top := w.target[r], float64(w.maximum[r])
	first := float64(row[t.class]) - top
	if t.weight == 1 {
		return first
	}
	return float64(t.weight*first) + float64((1-t.weight)*(float64(row[t.other])-top))
}

// gradients writes the gradients to d, given the exponentials e. The two may be the same.
func (w *softmaxRows) gradients(d, e []float32, n int, perRow float64) {
	for r, t := range w.target[:w.rows] {
		s := perRow / w.sum[r]
		// At the label p-1 is computed before rounding: it remains of the gradient when p
		// is close to 1.
		w.atLabel[r], w.scale[r] = float32((float64(e[r*n+t.class])-float64(t.weight*w.sum[r]))*s), s
		if t.weight != 1 {
			w.atOther[r] = float32((float64(e[r*n+t.other]) - float64((1-t.weight)*w.sum[r])) * s)
		}
	}
	if n <= vecBlock {
		timesRows(d, e, w.scale[:w.rows], n)
	} else {
		for j := 0; j < n; j += vecBlock {
			timesRows(d[j:], e[j:], w.scale[:1], min(vecBlock, n-j))
		}
	}
	for r, t := range w.target[:w.rows] {
		d[r*n+t.class] = w.atLabel[r]
		if t.weight != 1 {
			d[r*n+t.other] = w.atOther[r]
		}
	}
}
