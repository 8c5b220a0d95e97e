package vec

import (
	"sync"

	"fspda/cpu/kernel"
	"fspda/cpu/tile"
)

// addsHalves returns the operands of a sum of n numbers that may have 16 bits.
func addsHalves(dims []int) kernel.Halves {
	if dims[0]%2 != 0 {
		return kernel.Halves{}
	}
	return kernel.Halves{In: 1 | 2, Out: 1}
}

// numbersAtOnce is how many numbers of 16 bits become float32 numbers at a time.
const numbersAtOnce = 2048

var sumBuffers = sync.Pool{New: func() any { return new([3][numbersAtOnce]float32) }}

// addHalves is add for operands of which some have numbers of 16 bits.
func addHalves(o *kernel.Args, from, to int) {
	buffers := sumBuffers.Get().(*[3][numbersAtOnce]float32)
	defer sumBuffers.Put(buffers)
	for ; from < to; from += numbersAtOnce {
		end := min(from+numbersAtOnce, to)
		var in [2][]float32
		for i := range in {
			if in[i] = o.In[i]; o.Half.Input(i) {
				in[i] = buffers[i][:end-from]
				tile.Widen(in[i], o.In[i][from/2:end/2])
			} else {
				in[i] = in[i][from:end]
			}
		}
		if !o.Half.Output(0) {
			adds(o.Out[0][from:end], in[0], in[1], false)
			continue
		}
		sum := buffers[2][:end-from]
		adds(sum, in[0], in[1], false)
		tile.Narrow(o.Out[0][from/2:], sum)
	}
}
