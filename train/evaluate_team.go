package train

import (
	"sync"
	"sync/atomic"

	"fspda/device"
	"fspda/train/memory"
)

// teams deals the evaluator's workers out over so many models: each team has the places of its
// workers, and evaluates one model at a time. There are no more workers on the host than models,
// since a program there has cores of its own; elsewhere those that are left help out.
func (e *evaluator) teams(models int) [][]int {
	workers := e.workers
	if _, ok := e.places[0].Device.(memory.Device); !ok {
		workers = min(workers, models)
	}
	all := make([][]int, min(workers, models))
	for k := range workers {
		team := &all[k%len(all)]
		*team = append(*team, k%len(e.places))
	}
	return all
}

// test scores the model at the probes' x on the test set, or before the end on as much of it as was
// asked for. The probes share the batches out; what they find is added up in the order of the
// batches.
func (e *evaluator) test(p *point, team []*probe, t int) error {
	examples := testExamples(e.setup, t)
	n := len(examples)
	if n == 0 {
		n = e.setup.Set.Test.Len()
	}
	chunk := e.setup.EvalChunk()
	found, errs := make([]score, (n+chunk-1)/chunk), make([]error, len(team))
	var failed atomic.Bool
	work := func(k int) {
		for i := k; i < len(found) && !failed.Load(); i += len(team) { // devices of one kind are equally fast
			if found[i], errs[k] = e.scoreChunk(team[k], examples, i*chunk, min((i+1)*chunk, n)); errs[k] != nil {
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
		p.test.add(f)
	}
	return nil
}

// scoreChunk scores some of the examples.
func (e *evaluator) scoreChunk(pr *probe, examples []int32, from, to int) (found score, err error) {
	if e.interrupted() {
		return found, errInterrupted
	}
	b := e.batches.Get().(*device.Batch)
	defer e.batches.Put(b)
	if err := readTest(e.setup, b, examples, from, to); err != nil {
		return found, err
	}
	found.loss, found.hits, found.hits5, err = pr.score(*b)
	found.examples = b.N()
	return found, err
}

// add adds what was found in more examples.
func (s *score) add(o score) {
	s.loss += o.loss
	s.hits += o.hits
	s.hits5 += o.hits5
	s.examples += o.examples
}
