package attention

import (
	"math"

	"fspda/cpu/kernel"
	"fspda/cpu/tile"
	"fspda/device"
)

// Kernels are attention and rotary position embeddings.
var Kernels = kernel.Table{
	device.Attention:     {Run: forward, Scratch: forwardScratch},
	device.AttentionGrad: {Run: backward, Scratch: backwardScratch},
	device.RoPE:          {Run: rope(1)},
	device.RoPEGrad:      {Run: rope(-1)},
	device.RoPEStep:      {Run: ropeStep},
	device.AttentionStep: {Run: step, Scratch: stepScratch},
}

// Short is the number of tokens up to which rows of scores are computed whole. It is part of the
// definition.
const Short = 256

// blockKeys is how many keys the blocks of a longer window have, and blockRows how many queries. It
// is part of the definition.
const blockKeys = 64

// bandRows is the largest number of queries whose scores are computed at once. Bands that end with
// a whole vector have the fewest scores of later tokens, which are zero and change no sum.
const bandRows = 16

// shape is the size of a call: windows, tokens, heads, numbers of a head.
type shape struct{ windows, tokens, heads, width int }

func shapeOf(dims []int) shape { return shape{dims[0], dims[1], dims[2], dims[3]} }

func (s shape) units() int { return s.windows * s.heads }

// row returns the length of a row of y; one of qkv is three times as long.
func (s shape) row() int { return s.heads * s.width }

// short reports whether rows of scores are computed whole.
func (s shape) short() bool { return s.tokens <= Short }

// scale returns the factor of the scores.
func (s shape) scale() float32 { return float32(1 / math.Sqrt(float64(s.width))) }

// head returns the rows of one head in a matrix whose rows hold a number of parts of row() numbers,
// from the given part.
func (s shape) head(data []float32, unit, part, parts int) tile.View {
	b, h := unit/s.heads, unit%s.heads
	stride := parts * s.row()
	return tile.RowMajor(data[b*s.tokens*stride+part*s.row()+h*s.width:], stride)
}

func bands(queries int) int { return (queries + bandRows - 1) / bandRows }

// padded returns n rounded up to whole vectors.
func padded(n int) int { return kernel.Padded(n) }

// leastWork is how many multiply-adds of a head are worth another goroutine.
const leastWork = tile.MinParallelWork

// parts returns the number of parts of a call. A unit takes tokens²·width multiply-adds for each of
// its products.
func parts(o *kernel.Args, s shape, products int) int {
	work := float64(s.units()) * float64(products) * float64(s.tokens) * float64(s.tokens) * float64(s.width)
	return max(1, min(o.Threads(), s.units(), int(work/leastWork)))
}

func forward(o *kernel.Args) error {
	s := shapeOf(o.Dims)
	run := shortForward
	if !s.short() {
		run = blocksForward
	}
	o.Parallel(parts(o, s, 1), run)
	return nil
}

func forwardScratch(dims []int, threads int) int {
	s := shapeOf(dims)
	if s.short() {
		return threads * shortForwardFloats(s)
	}
	return threads * blocksForwardFloats(s)
}

func backward(o *kernel.Args) error {
	s := shapeOf(o.Dims)
	run := shortBackward
	if !s.short() {
		run = blocksBackward
	}
	o.Parallel(parts(o, s, 3), run)
	return nil
}

func backwardScratch(dims []int, threads int) int {
	s := shapeOf(dims)
	if s.short() {
		return threads * shortBackwardFloats(s)
	}
	return threads * blocksBackwardFloats(s)
}

// arena hands out parts of a worker's scratch memory.
type arena struct{ free []float32 }

// take returns n numbers, from a cache line on.
func (a *arena) take(n int) []float32 {
	v := a.free[:n:n]
	a.free = a.free[padded(n):]
	return v
}
