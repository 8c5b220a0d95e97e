package vec

import (
	"fspda/cpu/kernel"
)

// topRank is how many of the largest logits count as a hit in the third sum of score.
const topRank = 5

// score: sums over the rows of the cross entropy, of hits and of top-5 hits.
func score(o *kernel.Args) error {
	logits, labels, sums := o.In[0], o.In[1], o.Out[0]
	m, n := o.Dims[0], o.Dims[1]
	loss, hits, hits5 := 0.0, 0, 0
	err := eachPass(labels, m, n, func(w *softmaxRows, i int) {
		x := logits[i*n : (i+w.rows)*n]
		w.exponentials(nil, x, n)
		for r, t := range w.target[:w.rows] {
			loss += w.loss(r, x, n)
			switch r := rank(x[r*n:(r+1)*n], t.class); {
			case r == 0:
				hits++
				hits5++
			case r < topRank:
				hits5++
			}
		}
	})
	sums[0], sums[1], sums[2] = float32(loss), float32(hits), float32(hits5)
	return err
}

// rank returns how many logits rank before row[c]: the larger ones, and equal ones of lower index.
// In a row with a NaN, c ranks last.
func rank(row []float32, c int) int {
	r, v := 0, row[c]
	for j, w := range row {
		if w != w {
			return max(len(row), topRank)
		}
		if w > v || w == v && j < c {
			r++
		}
	}
	return r
}
