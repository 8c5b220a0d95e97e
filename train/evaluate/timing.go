package evaluate

import (
	"math"
	"time"

	"fspda/device"
	"fspda/train/config"
	"fspda/train/memory"
)

// chunkTime bounds the time for which a chunk is repeated.
const chunkTime = 25 * time.Millisecond

// TimeRows estimates the seconds of all evaluations from the given iteration on, by timing one chunk
// of each of their parts.
func (e *Evaluator) TimeRows(from int) (float64, error) {
	s := e.setup
	w := e.acquire(0)
	defer e.release(w)
	w.Device.Write(w.x, w.Model.Init(s.Config.Seed))
	if w.buffered {
		w.Device.Write(w.buffers, w.Model.InitBuffers())
	}
	score, err := e.timeChunk(func(b *device.Batch, n int) error {
		if err := s.Set.Test.Batch(b, 0, min(n, s.Set.Test.Len())); err != nil {
			return err
		}
		_, _, _, err := w.score(*b)
		return err
	})
	if err != nil {
		return 0, err
	}
	gradient := 0.0 // seconds an example
	if e.full() {
		shard := e.shards[0]
		gradient, err = e.timeChunk(func(b *device.Batch, n int) error {
			if err := s.Set.Train.Gather(b, shard[:min(n, len(shard))]); err != nil {
				return err
			}
			_, err := w.Model.Grad(w.g, w.x, *b)
			return err
		})
		if err != nil {
			return 0, err
		}
	}
	seconds := 0.0
	for k := s.EvalsBefore(from); k <= s.EvalCount(); k++ {
		if t := s.EvalPoint(k); t <= s.Config.Iterations {
			seconds += e.rowSeconds(t, score, gradient)
		}
		if k-s.EvalsBefore(from) == manyRows { // a run with millions of rows: extrapolate
			seconds *= (float64(s.EvalCount()-s.EvalsBefore(from)) + 1) / (manyRows + 1)
			break
		}
	}
	return seconds, nil
}

// manyRows is the largest number of evaluations that are estimated one by one.
const manyRows = 10000

// rowSeconds estimates the time of an evaluation. score and gradient are the seconds that one core
// needs for an example.
func (e *Evaluator) rowSeconds(t int, score, gradient float64) float64 {
	s := e.setup
	models := s.EvaluatedAgents() + 1
	if t == 0 {
		models = 1
	}
	tests := s.Set.Test.Len()
	if some, err := testsAt(s, t); err == nil {
		tests = some.len()
	}
	trained := 0
	for _, shard := range e.shards {
		trained += len(shard)
	}
	work := float64(models) * (float64(float64(tests)*score) + float64(float64(trained)*gradient))
	seconds := work / float64(max(1, e.parallel(models)))
	if BatchNormMode(s, t) == config.BNRecalibrate { // one batch after the other; forward passes, as scores are
		seconds += float64(float64(Recalibrations(s)*s.MicroBatch()) * score)
	}
	return seconds
}

// parallel returns the number of models that are evaluated in the time of one. The evaluations of a
// device with a memory of its own take turns.
func (e *Evaluator) parallel(models int) int {
	if memory.Owned(e.workers[0].Device) {
		return len(e.workers)
	}
	return min(e.atOnce, models)
}

// timeChunk calls do with a chunk of n examples at least twice, and returns the seconds per example
// of the fastest call.
func (e *Evaluator) timeChunk(do func(b *device.Batch, n int) error) (float64, error) {
	b := e.batches.Get().(*device.Batch)
	defer e.batches.Put(b)
	n := e.setup.EvalChunk()
	best := math.Inf(1)
	for k, begin := 0, time.Now(); k < 2 || k < 5 && time.Since(begin) < chunkTime; k++ {
		from := time.Now()
		if err := do(b, n); err != nil {
			return 0, err
		}
		best = math.Min(best, time.Since(from).Seconds()/float64(b.N()))
	}
	return best, nil
}
