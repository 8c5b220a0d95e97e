package evaluate

import (
	"slices"
	"sync"
	"sync/atomic"

	"fspda/device"
	"fspda/train/memory"
	"fspda/train/snapshot"
)

// teams divides the evaluator's capacity among a number of models. A team is a list of worker
// indices and evaluates one model at a time. On the host no more workers are used than there are
// models, because a program there has cores of its own; on other devices the remaining workers join
// the teams.
func (e *Evaluator) teams(models int) [][]int {
	workers := e.atOnce
	if !memory.Owned(e.workers[0].Device) {
		workers = min(workers, models)
	}
	all := make([][]int, min(workers, models))
	for k := range workers {
		team := &all[k%len(all)]
		*team = append(*team, k%len(e.workers))
	}
	return all
}

// test scores the model in the workspaces of a team on test examples. The team shares the batches;
// scores are added in the order of the batches.
func (e *Evaluator) test(p *point, tests testExamples, team []*workspace) error {
	n := tests.len()
	chunk := e.setup.EvalChunk()
	found, errs := make([]snapshot.Score, (n+chunk-1)/chunk), make([]error, len(team))
	var failed atomic.Bool
	work := func(k int) {
		for i := k; i < len(found) && !failed.Load(); i += len(team) { // devices of one kind are equally fast
			if found[i], errs[k] = e.scoreChunk(team[k], tests, i*chunk, min((i+1)*chunk, n)); errs[k] != nil {
				failed.Store(true)
			}
		}
	}
	var rest sync.WaitGroup
	for k := 1; k < len(team); k++ {
		rest.Go(func() { work(k) })
	}
	work(0)
	rest.Wait()
	if failed.Load() {
		return joined(errs)
	}
	for _, f := range found {
		p.test.Add(f)
	}
	return nil
}

// scoreChunk scores examples from to to-1.
func (e *Evaluator) scoreChunk(w *workspace, tests testExamples, from, to int) (found snapshot.Score, err error) {
	if e.interrupted() {
		return found, ErrInterrupted
	}
	b := e.batches.Get().(*device.Batch)
	defer e.batches.Put(b)
	if err := tests.read(b, from, to); err != nil {
		return found, err
	}
	found.Loss, found.Hits, found.Hits5, err = w.score(*b)
	found.Examples = int64(b.Targets())
	return found, err
}

// objective computes F and its gradient at w.x. With keep it keeps the gradient of each f_i.
func (e *Evaluator) objective(p *point, w *workspace, keep bool) error {
	p.loss = 0
	clear(w.full)
	for i, shard := range e.shards {
		loss, err := e.shard(w, shard)
		if err != nil {
			return err
		}
		weight := e.setup.Weight[i]
		p.loss += float64(weight * loss)
		for k, v := range w.shard {
			w.full[k] += float64(weight * v)
		}
		if keep {
			p.shards = append(p.shards, rounded(w.shard))
		}
	}
	p.gradSq = square(0, w.full)
	if keep {
		p.full = slices.Clone(w.full)
	}
	return nil
}

// rounded returns numbers as float32.
func rounded(numbers []float64) []float32 {
	out := make([]float32, len(numbers))
	for k, v := range numbers {
		out[k] = float32(v)
	}
	return out
}

// square returns sum plus the sum of the squares of numbers.
func square(sum float64, numbers []float64) float64 {
	for _, v := range numbers {
		sum += float64(v * v)
	}
	return sum
}

// shard computes f_i over a whole shard at w.x, and its gradient in w.shard.
func (e *Evaluator) shard(w *workspace, shard []int32) (float64, error) {
	b := e.batches.Get().(*device.Batch)
	defer e.batches.Put(b)
	clear(w.shard)
	total := 0.0
	chunk := e.setup.EvalChunk()
	for from := 0; from < len(shard); from += chunk {
		if e.interrupted() {
			return 0, ErrInterrupted
		}
		part := shard[from:min(from+chunk, len(shard))]
		if err := e.setup.Set.Train.Gather(b, part); err != nil {
			return 0, err
		}
		loss, err := w.grad(*b)
		if err != nil {
			return 0, err
		}
		weight := float64(len(part)) / float64(len(shard))
		total += float64(weight * loss)
		w.Device.Read(w.host, w.g)
		for k, v := range w.host {
			w.shard[k] += float64(weight * float64(v))
		}
	}
	return total, nil
}

// score is Model.Score, with the buffers if there are any.
func (w *workspace) score(b device.Batch) (loss, hits, hits5 float64, err error) {
	if w.buffered {
		return w.Model.ScoreWith(w.x, w.buffers, b)
	}
	return w.Model.Score(w.x, b)
}

// grad is Model.Grad for an evaluation, which must not skip a gradient: one that fp16 skips is
// computed again with the smaller loss scale.
func (w *workspace) grad(b device.Batch) (loss float64, err error) {
	dst := w.g
	dev := w.Device.Features().Scaler
	for {
		var before device.LossScale
		if dev != nil {
			before, _ = dev.LossScale(dst)
		}
		if loss, err = w.Model.Grad(dst, w.x, b); err != nil || dev == nil {
			return loss, err
		}
		if after, ok := dev.LossScale(dst); !ok || after.Skipped == before.Skipped || after.Scale == before.Scale {
			return loss, nil
		}
	}
}
