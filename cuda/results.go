package cuda

import (
	"unsafe"

	"fspda/cuda/driver"
	"fspda/cuda/executor"
	"fspda/cuda/kernels"
	"fspda/device"
)

// resultRange is the part of the arena that holds all results, in numbers.
type resultRange struct{ from, to int }

func rangeOf(results []device.Result) resultRange {
	if len(results) == 0 {
		return resultRange{}
	}
	r := resultRange{results[0].Ref.Off, results[0].Ref.Off + 1}
	for _, x := range results {
		r.from, r.to = min(r.from, x.Ref.Off), max(r.to, x.Ref.Off+1)
	}
	return r
}

func (r resultRange) bytes() int { return 4 * (r.to - r.from) }

func (r resultRange) collect(numbers []float32, results []device.Result, out []float64) {
	for i, x := range results {
		out[i] = float64(numbers[x.Ref.Off-r.from])
	}
}

// hostResults is pinned memory for the copies that a run sends back: the state of its loss scale,
// and from resultsAt on its results. Each buffer but the last has executor.ChunkBytes.
type hostResults []*executor.Buffer

const resultsAt = 32 // bytes, at least kernels.ScalerBytes

// takeHostResults takes the memory for a run with these results.
func takeHostResults(ex *executor.Executor, r resultRange) (h hostResults, err error) {
	for left := resultsAt + r.bytes(); left > 0; left -= executor.ChunkBytes {
		b, err := ex.TakeBuffer(min(left, executor.ChunkBytes))
		if err != nil {
			h.put(ex)
			return nil, err
		}
		h = append(h, b)
	}
	return h, nil
}

func (h hostResults) put(ex *executor.Executor) {
	for _, b := range h {
		ex.PutBuffer(b)
	}
}

func (h hostResults) fetch(ex *executor.Executor, arena kernels.Address, r resultRange) error {
	from, left, skip := driver.Pointer(arena)+driver.Pointer(4*r.from), r.bytes(), resultsAt
	for _, b := range h {
		n := min(left, executor.ChunkBytes-skip)
		if n == 0 {
			break
		}
		if err := ex.CopyFromDevice(unsafe.Pointer(&b.Bytes[skip]), from, n); err != nil {
			return err
		}
		from, left, skip = from+driver.Pointer(n), left-n, 0
	}
	return nil
}

func (h hostResults) numbers(r resultRange) []float32 {
	first := min(r.bytes(), executor.ChunkBytes-resultsAt) / 4
	all := h[0].Float32s(resultsAt/4 + first)[resultsAt/4:]
	for _, b := range h[1:] {
		left := r.bytes()/4 - len(all)
		all = append(all[:len(all):len(all)], b.Float32s(min(left, executor.ChunkBytes/4))...)
	}
	return all
}
