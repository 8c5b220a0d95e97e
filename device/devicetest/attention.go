package devicetest

import (
	"math"
	"sync"

	"fspda/device"
)

// attentionKernels are attention and rotary position embeddings.
var attentionKernels = map[device.Kernel]language{
	device.RoPE:          {rotated(1), ropeCalls, nil, ropeBounds},
	device.RoPEGrad:      {rotated(-1), ropeCalls, nil, ropeBounds},
	device.Attention:     {interpretAttention, attentionCalls, attentionInputs, attentionBounds},
	device.AttentionGrad: {interpretAttentionGrad, attentionCalls, attentionInputs, attentionGradBounds},
	device.RoPEStep:      {interpretRoPEStep, ropeStepCalls, positionInput, ropeStepBounds},
	device.AttentionStep: {interpretAttentionStep, attentionStepCalls, attentionStepInputs, attentionStepBounds},
}

func ropeCalls(add func(attr float64, dims ...int)) {
	add(10000, 1, 1, 1, 2)
	add(10000, 2, 5, 2, 4)
	add(10000, 1, 70, 1, 10)
	add(500, 1, 3, 3, 2)
}

// attentionCalls has windows of one token and more than one band, widths between vectors, a window
// longer than those that are computed whole, and all widths and tails of tiles on tensor cores.
func attentionCalls(add func(attr float64, dims ...int)) {
	add(0, 1, 1, 1, 1)
	add(0, 2, 5, 2, 3)
	add(0, 1, 17, 2, 8)
	add(0, 2, 33, 1, 17)
	add(0, 1, 64, 1, 32)
	add(0, 1, 300, 1, 5)
	add(0, 2, 70, 2, 64)
	add(0, 1, 161, 1, 48)
	add(0, 1, 130, 2, 16)
	add(0, 1, 99, 1, 128)
	add(0, 1, 65, 2, 80)
}

// rotated returns RoPE by the angles of the positions, times sign.
func rotated(sign float64) interpreter {
	return func(c *device.Call, in, out [][]float64) {
		copy(out[0], in[0])
		eachPair(c, func(a, b int, angle float64) {
			sin, cos := math.Sincos(sign * angle)
			x, y := in[0][a], in[0][b]
			out[0][a], out[0][b] = x*cos-y*sin, y*cos+x*sin
		})
	}
}

func eachPair(c *device.Call, f func(a, b int, angle float64)) {
	windows, tokens, heads, h := c.Dims[0], c.Dims[1], c.Dims[2], c.Dims[3]
	for r := range windows * tokens {
		for head := range 2 * heads {
			for j := range h / 2 {
				at := r*3*heads*h + head*h + j
				f(at, at+h/2, float64(r%tokens)*math.Pow(c.Attr, -2*float64(j)/float64(h)))
			}
		}
	}
}

func ropeBounds(c *device.Call, in, _, b [][]float64) {
	eachPair(c, func(i, j int, _ float64) {
		b[0][i] = 6 * unit * (math.Abs(in[0][i]) + math.Abs(in[0][j]))
		b[0][j] = b[0][i]
	})
}

// attentionInputs makes scores moderate, and computes y and lse from qkv.
func attentionInputs(c *device.Call, in [][]float32) {
	replace(in[0], func(x float32) float32 { return x / 4 })
	if c.Kernel != device.AttentionGrad {
		return
	}
	setAttention(c, in)
}

// setAttention computes y and lse from qkv.
func setAttention(c *device.Call, in [][]float32) {
	y, lse := make([]float64, len(in[1])), make([]float64, len(in[2]))
	interpretAttention(c, [][]float64{widen(in[0])}, [][]float64{y, lse})
	for i, v := range y {
		in[1][i] = float32(v)
	}
	for i, v := range lse {
		in[2][i] = float32(v)
	}
}

// attentionHead is one head of one window.
type attentionHead struct {
	tokens, width int
	scale         float64
	row           int // numbers between rows of y; rows of qkv are three times as far apart
	first, unit   int // first number in y and first row in lse, divided by tokens
}

// eachHead calls f for all heads, concurrently: it may write the numbers of its head.
func eachHead(c *device.Call, f func(h attentionHead)) {
	var all sync.WaitGroup
	defer all.Wait()
	windows, tokens, heads, h := c.Dims[0], c.Dims[1], c.Dims[2], c.Dims[3]
	for w := range windows {
		for head := range heads {
			all.Go(func() {
				f(attentionHead{tokens, h, 1 / math.Sqrt(float64(h)), heads * h, (w*tokens*heads + head) * h,
					w*heads + head})
			})
		}
	}
}

// at returns the index of number j of row i in y, and in the given part of qkv.
func (h attentionHead) at(i, j int) int { return h.first + i*h.row + j }

func (h attentionHead) in(part, i, j int) int {
	head := h.first % h.row
	return 3*(h.first-head) + i*3*h.row + part*h.row + head + j
}

// product returns the product of row i of a and row k of b, two of the parts of qkv or y.
func (h attentionHead) product(a, b []float64, at, bt func(j int) int) (sum, absolute float64) {
	for j := range h.width {
		v := a[at(j)] * b[bt(j)]
		sum += v
		absolute += math.Abs(v)
	}
	return sum, absolute
}

// scores returns the scores of row i, and the largest error of one.
func (h attentionHead) scores(qkv []float64, i int) (s []float64, off float64) {
	for k := range i + 1 {
		v, absolute := h.product(qkv, qkv, func(j int) int { return h.in(0, i, j) }, func(j int) int {
			return h.in(1, k, j)
		})
		s = append(s, h.scale*v)
		off = math.Max(off, float64(h.width+3)*unit*h.scale*absolute)
	}
	return s, off
}

func interpretAttention(c *device.Call, in, out [][]float64) {
	eachHead(c, func(h attentionHead) {
		for i := range h.tokens {
			s, _ := h.scores(in[0], i)
			norm := logSumExp(s)
			out[1][h.unit*h.tokens+i] = norm
			for j := range h.width {
				sum := 0.0
				for k, v := range s {
					sum += math.Exp(v-norm) * in[0][h.in(2, k, j)]
				}
				out[0][h.at(i, j)] = sum
			}
		}
	})
}

func attentionBounds(c *device.Call, in, want, b [][]float64) {
	eachHead(c, func(h attentionHead) {
		for i := range h.tokens {
			s, off := h.scores(in[0], i)
			norm := want[1][h.unit*h.tokens+i]
			b[1][h.unit*h.tokens+i] = off + 8*unit*(1+math.Abs(norm))
			for j := range h.width {
				sum := 0.0
				for k, v := range s {
					sum += math.Exp(v-norm) * math.Abs(in[0][h.in(2, k, j)])
				}
				b[0][h.at(i, j)] = (2*off+float64(h.tokens+16)*unit)*sum + smallest
			}
		}
	})
}

// slopes returns the shares of row i and the gradients by its scores, and their errors.
func (h attentionHead) slopes(in [][]float64, i int) (shares, slopes, offShare, offSlope []float64) {
	qkv, y, lse, dy := in[0], in[1], in[2], in[3]
	row := func(j int) int { return h.at(i, j) }
	mean, meanAbsolute := h.product(y, dy, row, row)
	s, off := h.scores(qkv, i)
	norm := lse[h.unit*h.tokens+i]
	off = 2*off + (16+4*math.Abs(norm))*unit
	for k, v := range s {
		p := math.Exp(v - norm)
		d, absolute := h.product(dy, qkv, row, func(j int) int { return h.in(2, k, j) })
		shares, slopes = append(shares, p), append(slopes, p*(d-mean))
		offShare = append(offShare, p*off)
		offSlope = append(offSlope, p*off*(math.Abs(d)+math.Abs(mean))+
			p*float64(h.width+6)*unit*(absolute+meanAbsolute))
	}
	return shares, slopes, offShare, offSlope
}

func interpretAttentionGrad(c *device.Call, in, out [][]float64) {
	clear(out[0])
	eachHead(c, func(h attentionHead) {
		for i := range h.tokens {
			shares, slopes, _, _ := h.slopes(in, i)
			for k, p := range shares {
				for j := range h.width {
					out[0][h.in(0, i, j)] += h.scale * slopes[k] * in[0][h.in(1, k, j)]
					out[0][h.in(1, k, j)] += h.scale * slopes[k] * in[0][h.in(0, i, j)]
					out[0][h.in(2, k, j)] += p * in[3][h.at(i, j)]
				}
			}
		}
	})
}

func attentionGradBounds(c *device.Call, in, _, b [][]float64) {
	eachHead(c, func(h attentionHead) {
		chain := float64(h.tokens+8) * unit
		for i := range h.tokens {
			shares, slopes, offShare, offSlope := h.slopes(in, i)
			for k, p := range shares {
				slope := h.scale * (offSlope[k] + chain*math.Abs(slopes[k]))
				for j := range h.width {
					b[0][h.in(0, i, j)] += slope*math.Abs(in[0][h.in(1, k, j)]) + smallest
					b[0][h.in(1, k, j)] += slope*math.Abs(in[0][h.in(0, i, j)]) + smallest
					b[0][h.in(2, k, j)] += (offShare[k]+chain*p)*math.Abs(in[3][h.at(i, j)]) + smallest
				}
			}
		}
	})
}

// widenAttention allows that a device rounds the exponentials of the scores, relative to the
// largest of a row, before it multiplies them with the values.
func (s HalfPrecision) widenAttention(c *device.Call, in [][]float32, want, b [][]float64) {
	qkv := widen(in[0])
	eachHead(c, func(h attentionHead) {
		for i := range h.tokens {
			scores, _ := h.scores(qkv, i)
			for k, v := range scores {
				p := math.Exp(v - want[1][h.unit*h.tokens+i])
				for j := range h.width {
					b[0][h.at(i, j)] += (s.Unit*p + s.Smallest) * math.Abs(qkv[h.in(2, k, j)])
				}
			}
		}
	})
}

// widenAttentionGrad allows that a device rounds the shares, and the gradients by the scores,
// before it multiplies them.
func (s HalfPrecision) widenAttentionGrad(c *device.Call, in [][]float32, b [][]float64) {
	var wide [][]float64
	for _, v := range in {
		wide = append(wide, widen(v))
	}
	qkv, dy := wide[0], wide[3]
	eachHead(c, func(h attentionHead) {
		for i := range h.tokens {
			shares, slopes, _, _ := h.slopes(wide, i)
			for k, p := range shares {
				slope := h.scale * (s.Unit*math.Abs(slopes[k]) + s.Smallest)
				for j := range h.width {
					b[0][h.in(0, i, j)] += slope * math.Abs(qkv[h.in(1, k, j)])
					b[0][h.in(1, k, j)] += slope * math.Abs(qkv[h.in(0, i, j)])
					b[0][h.in(2, k, j)] += (s.Unit*p + s.Smallest) * math.Abs(dy[h.at(i, j)])
				}
			}
		}
	})
}
