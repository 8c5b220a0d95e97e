package cpu

import "math"

// softmaxCrossEntropy: loss = mean over the rows of -log softmax(logits)[label], dlogits = (softmax - onehot)/m.
func softmaxCrossEntropy(o *operands) error {
	logits, labels, loss, dlogits := o.in[0], o.in[1], o.out[0], o.out[1]
	m, n := o.dims[0], o.dims[1]
	total, perRow := 0.0, 1/float64(m)
	for i := range m {
		c, err := labelAt(labels, i, n)
		if err != nil {
			return err
		}
		row, d := logits[i*n:(i+1)*n], dlogits[i*n:(i+1)*n]
		top := largest(row)
		sum := expSum(row, top, d)
		total += math.Log(sum) - (float64(row[c]) - top)
		scale := perRow / sum
		// The label's p-1 is taken before rounding: it is what remains of the gradient when p is close to 1.
		atLabel := (float64(d[c]) - sum) * scale
		for j, e := range d {
			d[j] = float32(float64(e) * scale)
		}
		d[c] = float32(atLabel)
	}
	loss[0] = float32(float64(total * perRow))
	return nil
}

// crossEntropy returns log Σ exp(row) - row[c].
func crossEntropy(row []float32, c int) float64 {
	top := largest(row)
	return math.Log(expSum(row, top, nil)) - (float64(row[c]) - top)
}

// expSum returns Σ exp(row-top), from left to right, and writes the summands to dst unless it is nil.
func expSum(row []float32, top float64, dst []float32) float64 {
	var buffer [expBlock]float64
	sum := 0.0
	for len(row) > 0 {
		e := buffer[:min(expBlock, len(row))]
		for j, v := range row[:len(e)] {
			e[j] = float64(v) - top
		}
		exps(e)
		for _, v := range e {
			sum += v
		}
		if dst != nil {
			d := dst[:len(e)]
			for j, v := range e {
				d[j] = float32(v)
			}
			dst = dst[len(e):]
		}
		row = row[len(e):]
	}
	return sum
}

// largest returns the largest number of row, or NaN if row begins with one. Subtracting it keeps the exponentials finite, and the
// largest of them is exactly 1.
func largest(row []float32) float64 {
	top := row[0]
	for _, v := range row {
		if v > top {
			top = v
		}
	}
	return float64(top)
}
