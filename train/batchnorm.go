package train

import (
	"fmt"
	"sort"

	"fspda/device"
	"fspda/internal/rng"
	"fspda/train/config"
)

// bnMode is how the mean model is evaluated at iteration t. The numbers of the end come from
// statistics of its own, unless each agent's were asked for. It is empty where the network has no
// batch norm.
func bnMode(s *Setup, t int) string {
	switch c := s.Config; {
	case len(s.Buffers) == 0:
		return ""
	case t == c.Iterations && c.BN == config.BNPooled:
		return config.BNRecalibrate
	default:
		return c.BN
	}
}

// pool puts the buffers of several agents together, as if their batches had come from one: the mean
// of the means, and as variance the mean of the variances plus the variance of the means. The sizes
// are those of [Buffered.BufferSizes].
func pool(sizes []int, agents [][]float32) []float32 {
	out := make([]float32, len(agents[0]))
	n := float64(len(agents))
	at := 0
	for l := 0; l+1 < len(sizes); l += 2 {
		size := sizes[l]
		for k := at; k < at+size; k++ {
			var mean, square, variance float64
			for _, b := range agents {
				m := float64(b[k])
				mean += m / n
				variance += float64(b[k+size]) / n
			}
			for _, b := range agents {
				gap := float64(b[k]) - mean
				square += float64(gap*gap) / n
			}
			out[k], out[k+size] = float32(mean), float32(variance+square)
		}
		at += 2 * size
	}
	return out
}

// nobody is the agent whose batches those of a recalibration are.
const nobody = -1

// recalibrate measures the buffers of the model at the probe's x anew, over batches of training
// examples, varied as training varies them: the mean over the batches of their means and variances.
func (e *evaluator) recalibrate(pr *probe) ([]float32, error) {
	s := e.setup
	b := e.batches.Get().(*device.Batch)
	defer e.batches.Put(b)
	host := pr.buffered.InitBuffers()
	buffers := pr.Device.NewVector(len(host))
	pr.Device.Write(buffers, host)
	var examples []int32
	for k := range recalibrations(s) {
		examples = recalibration(s, examples[:0], k)
		if e.interrupted() {
			return nil, errInterrupted
		}
		if err := s.Set.Train.GatherAugmented(b, examples, s.Config.Seed, nobody, k); err != nil {
			return nil, err
		}
		if err := pr.buffered.Observe(pr.x, buffers, *b, 1/float64(k+1)); err != nil {
			return nil, fmt.Errorf("train: batch norm of the mean model, batch %d: %w", k, err)
		}
	}
	pr.Device.Read(host, buffers)
	return host, nil
}

// recalibrations is the number of batches of a recalibration: Config.BNBatches, or as many as go
// over the training set twice where that is less.
func recalibrations(s *Setup) int {
	n, m := s.Set.Train.Len(), s.MicroBatch()
	return min(s.Config.BNBatches, 2*((n+m-1)/m))
}

// recalibration appends the examples of the k-th batch: as many as a gradient sees at once, each of
// an agent drawn by its weight in F and then of its shard. They are a function of the seed and k
// alone.
func recalibration(s *Setup, dst []int32, k int) []int32 {
	st := rng.New(s.Config.Seed, "recalibrate", uint64(k))
	upTo := make([]float64, len(s.Weight))
	sum := 0.0
	for i, w := range s.Weight {
		sum += w
		upTo[i] = sum
	}
	for range s.MicroBatch() {
		u := st.Float64() * sum
		i := min(sort.Search(len(upTo), func(i int) bool { return upTo[i] > u }), len(upTo)-1)
		dst = append(dst, s.Shards[i][st.IntN(len(s.Shards[i]))])
	}
	return dst
}
