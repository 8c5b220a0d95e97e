package evaluate

import (
	"fmt"
	"sort"

	"fspda/device"
	"fspda/internal/rng"
	"fspda/train/config"
)

// BatchNormMode returns the value of the key bn for the mean model at iteration t. At the end, and
// for averages of weights, to which the statistics of no agent belong, pooled becomes recalibrate.
// It is "" if the network has no batch norm.
func BatchNormMode(s *config.Setup, t int) string {
	switch c := s.Config; {
	case len(s.Buffers) == 0:
		return ""
	case c.BN == config.BNPooled && (t == c.Iterations || s.Traits.Averages):
		return config.BNRecalibrate
	default:
		return c.BN
	}
}

// PoolBuffers combines the buffers of several agents as if their batches came from one: the mean of
// the means, and as variance the mean of the variances plus the variance of the means. The sizes
// are Setup.Buffers.
func PoolBuffers(sizes []int, agents [][]float32) []float32 {
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

// noAgent is the agent number of the batches of a recalibration.
const noAgent = -1

// recalibrate computes the buffers of the model at w.x: the mean over augmented training batches of
// their means and variances.
func (e *Evaluator) recalibrate(w *workspace) ([]float32, error) {
	s := e.setup
	b := e.batches.Get().(*device.Batch)
	defer e.batches.Put(b)
	host := w.Model.InitBuffers()
	buffers := w.Device.NewVector(len(host))
	w.Device.Write(buffers, host)
	var examples []int32
	for k := range Recalibrations(s) {
		examples = RecalibrationBatch(s, examples[:0], k)
		if e.interrupted() {
			return nil, ErrInterrupted
		}
		if err := s.Set.Train.GatherAugmented(b, examples, s.Config.Seed, noAgent, k); err != nil {
			return nil, err
		}
		if err := w.Model.Observe(w.x, buffers, *b, 1/float64(k+1)); err != nil {
			return nil, fmt.Errorf("evaluate: batch norm of the mean model, batch %d: %w", k, err)
		}
	}
	w.Device.Read(host, buffers)
	return host, nil
}

// Recalibrations returns the number of batches of a recalibration: bn_batches, but at most two
// passes over the training set, and at most one for each gradient of the run, so that it costs less
// than the training.
func Recalibrations(s *config.Setup) int {
	n, m := s.Set.Train.Len(), s.MicroBatch()
	return min(s.Config.BNBatches, 2*((n+m-1)/m), s.Config.Iterations*s.Config.Agents)
}

// RecalibrationBatch appends the examples of the k-th batch, as many as a gradient is computed over
// at once: each from the shard of an agent that is drawn by its weight in F. They are a function of
// the seed and k.
func RecalibrationBatch(s *config.Setup, dst []int32, k int) []int32 {
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
