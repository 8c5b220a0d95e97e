package vec

import (
	"fspda/cpu/kernel"
)

// smoothCrossEntropy is softmaxCrossEntropy with targets s/n, plus 1-s at the labels. It computes in
// float64, logit by logit: label smoothing is used with large networks, for which this cost is
// small.
func smoothCrossEntropy(o *kernel.Args) error {
	logits, labels, loss, dlogits := o.In[0], o.In[1], o.Out[0], o.Out[1]
	m, n := o.Dims[0], o.Dims[1]
	total := 0.0
	err := eachPass(labels, m, n, func(w *softmaxRows, i int) {
		x, d := logits[i*n:(i+w.rows)*n], dlogits[i*n:(i+w.rows)*n]
		e := w.exponentials(d, x, n)
		for r := range w.rows {
			total += w.smoothRow(r, x[r*n:(r+1)*n], e[r*n:], d[r*n:(r+1)*n], o.Attr, 1/float64(m))
		}
	})
	loss[0] = float32(float64(total / float64(m)))
	return err
}

// smoothRow writes the gradient of row r, times perRow, to d and returns the loss of the row. The
// exponentials e may lie in d.
func (w *softmaxRows) smoothRow(r int, x, e, d []float32, s, perRow float64) float64 {
	t, top, sum := w.target[r], float64(w.maximum[r]), w.sum[r]
	each := s / float64(len(x)) // the target of every class
	below := 0.0                // Σ (x - maximum)
	for j, v := range x {
		below += float64(v) - top
		// At the label p-1 is computed before rounding: it remains of the gradient when p
		// is close to 1.
		p := float64(e[j]) / sum
		if at := t.of(j); at != 0 {
			p = (float64(e[j])-float64(at*sum))/sum + float64(s*at)
		}
		d[j] = float32(float64((p - each) * perRow))
	}
	return logOf(sum) - float64((1-s)*w.ahead(r, x)) - float64(each*below)
}
