package train

import (
	"errors"
	"math"
	"slices"
	"sync"

	"fspda/device"
	"fspda/train/algo"
)

// evalChunk is how many examples are evaluated at a time. It is part of the definition of the metrics' last bits.
const evalChunk = 250

// evaluator turns the agents' snapshots of one iteration into a Row. It only reads: no metric changes a trajectory. Sums are
// accumulated in float64 in a fixed order, each product rounded by itself (the conversions forbid fusing), so neither the number of
// workers nor the processor's architecture changes a bit.
type evaluator struct {
	setup   *Setup
	model   Model
	dev     device.Device
	workers int
	watch   *Watch

	batches sync.Pool // *device.Batch of evalChunk examples
	free    sync.Pool // *probe
}

// probe is one worker's scratch space.
type probe struct {
	x, g  device.Vector
	host  []float32
	shard []float64 // gradient of one f_i
	full  []float64 // gradient of F
}

// point is what a model is worth: objective, its gradient, and the test set.
type point struct {
	loss, gradSq float64
	test         score
	shards       [][]float32 // gradient of each f_i, where asked for
	full         []float64
	err          error
}

// score is the sum of what a model makes of examples.
type score struct {
	loss, hits, hits5 float64
	examples          int
}

func newEvaluator(s *Setup, m Model, dev device.Device, workers int) *evaluator {
	e := &evaluator{setup: s, model: m, dev: dev, workers: workers}
	e.batches.New = func() any { return new(device.Batch) }
	e.free.New = func() any {
		return &probe{x: dev.NewVector(s.Dim), g: dev.NewVector(s.Dim), host: make([]float32, s.Dim),
			shard: make([]float64, s.Dim), full: make([]float64, s.Dim)}
	}
	return e
}

// row evaluates the snapshots of all agents at one iteration, ordered by agent.
func (e *evaluator) row(sn []*snapshot) (Row, error) {
	n, d := len(sn), e.setup.Dim
	models := make([][]float32, n, n+1)
	for i, s := range sn {
		models[i] = make([]float32, d)
		e.dev.Read(models[i], s.x)
	}
	mean := meanModel(models)
	mean32 := make([]float32, d)
	for k, v := range mean {
		mean32[k] = float32(v)
	}
	duals := e.duals(sn)
	looked := e.looked(models)
	points, err := e.points(append(looked, mean32), duals != nil)
	if err != nil {
		return Row{}, err
	}
	r := e.bookkeeping(sn)
	r.Consensus, r.ConsensusMax = consensus(models, mean)
	e.watch.evaluated(models, mean, points[:len(looked)])
	fillScores(&r, points[:len(looked)], points[len(looked)])
	r.DualSum, r.DualTrack = Num(math.NaN()), Num(math.NaN())
	if duals != nil {
		r.DualSum = dualSum(duals)
		r.DualTrack = e.dualTrack(duals, points[len(looked)])
	}
	return r, nil
}

// looked is the models that are evaluated one by one: all, or as many as were asked for, of agents in equal distances. What is measured of an
// agent costs a pass over all training data, and so grows with the square of their number.
func (e *evaluator) looked(models [][]float32) [][]float32 {
	n, k := len(models), e.setup.Config.EvalAgents
	if k == 0 || k >= n {
		return slices.Clip(models)
	}
	some := make([][]float32, 0, k+1)
	for i := range k {
		some = append(some, models[i*n/k])
	}
	return some
}

// bookkeeping fills what needs no model: counters and step sizes.
func (e *evaluator) bookkeeping(sn []*snapshot) Row {
	t := sn[0].t
	r := Row{Iteration: t, Epoch: Num(e.setup.Epochs(t))}
	for _, s := range sn {
		l := s.ledger
		r.BitsSharedSeed += l.SharedSeed
		r.BitsPacked += l.Packed
		r.BitsReference += l.Reference
		r.OverheadBits += l.Overhead
		r.WireBytes += l.WireBytes
		r.BitsTotal += e.setup.bits(l)
		r.BitsAgentMax = max(r.BitsAgentMax, e.setup.bits(l))
		r.GradsTotal += s.grads
		r.FarDecodes += s.decodes.Far
		r.LargestDecode = max(r.LargestDecode, Num(s.decodes.Largest))
		r.Time = max(r.Time, Num(s.time))
		r.TimeMean += Num(s.time)
	}
	r.TimeMean /= Num(len(sn))
	if e.setup.sparing() {
		r.Epoch = Num(float64(r.GradsTotal) / float64(len(sn)) / e.setup.perEpoch())
	}
	alpha, eta := e.setup.Schedule.At(t)
	r.LR, r.Eta = Num(alpha), Num(eta)
	return r
}

// points evaluates each model. Equal models, as all are at the start, are evaluated once.
func (e *evaluator) points(models [][]float32, shards bool) ([]*point, error) {
	out := make([]*point, len(models))
	var todo []int
	for i := len(models) - 1; i >= 0; i-- { // the mean first, so that it keeps the shards' gradients
		for _, j := range todo {
			if slices.Equal(models[i], models[j]) {
				out[i] = out[j]
				break
			}
		}
		if out[i] == nil {
			out[i] = &point{}
			todo = append(todo, i)
		}
	}
	var wg sync.WaitGroup
	work := make(chan int)
	for range min(e.workers, len(todo)) {
		wg.Go(func() {
			for i := range work {
				out[i].err = e.measure(out[i], models[i], shards && i == len(models)-1)
			}
		})
	}
	for _, i := range todo {
		work <- i
	}
	close(work)
	wg.Wait()
	var errs []error
	for _, i := range todo {
		errs = append(errs, out[i].err)
	}
	return out, errors.Join(errs...)
}

// measure evaluates one model on every shard and on the test set.
func (e *evaluator) measure(p *point, model []float32, keep bool) error {
	pr := e.free.Get().(*probe)
	defer e.free.Put(pr)
	e.dev.Write(pr.x, model)
	clear(pr.full)
	for i, shard := range e.setup.Shards {
		loss, err := e.shard(pr, shard)
		if err != nil {
			return err
		}
		w := e.setup.Weight[i]
		p.loss += float64(w * loss)
		for k, v := range pr.shard {
			pr.full[k] += float64(w * v)
		}
		if keep {
			g := make([]float32, len(pr.shard))
			for k, v := range pr.shard {
				g[k] = float32(v)
			}
			p.shards = append(p.shards, g)
		}
	}
	for _, v := range pr.full {
		p.gradSq += float64(v * v)
	}
	if keep {
		p.full = slices.Clone(pr.full)
	}
	return e.test(p, pr)
}

// shard computes f_i and its gradient over a whole shard at pr.x, in pr.shard.
func (e *evaluator) shard(pr *probe, shard []int32) (float64, error) {
	b := e.batches.Get().(*device.Batch)
	defer e.batches.Put(b)
	clear(pr.shard)
	total := 0.0
	for from := 0; from < len(shard); from += evalChunk {
		part := shard[from:min(from+evalChunk, len(shard))]
		e.setup.Set.Train.Gather(b, part)
		loss, err := e.model.Grad(pr.g, pr.x, *b)
		if err != nil {
			return 0, err
		}
		w := float64(len(part)) / float64(len(shard))
		total += float64(w * loss)
		e.dev.Read(pr.host, pr.g)
		for k, v := range pr.host {
			pr.shard[k] += float64(w * float64(v))
		}
	}
	return total, nil
}

// test scores the model at pr.x on the whole test set.
func (e *evaluator) test(p *point, pr *probe) error {
	b := e.batches.Get().(*device.Batch)
	defer e.batches.Put(b)
	n := e.setup.Set.Test.Len()
	for from := 0; from < n; from += evalChunk {
		e.setup.Set.Test.Batch(b, from, min(from+evalChunk, n))
		loss, hits, hits5, err := e.model.Score(pr.x, *b)
		if err != nil {
			return err
		}
		p.test.loss += loss
		p.test.hits += hits
		p.test.hits5 += hits5
		p.test.examples += b.N()
	}
	return nil
}

// duals reads the vectors that the algorithm says sum to zero, or returns nil where it has none.
func (e *evaluator) duals(sn []*snapshot) [][]float32 {
	tr, ok := e.setup.Algo.(algo.Tracker)
	if !ok {
		return nil
	}
	name, _ := tr.Tracked(e.setup.Config.Alpha, e.setup.Config.Eta.V)
	at := slices.Index(e.setup.Algo.Aux(), name)
	out := make([][]float32, len(sn))
	for i, s := range sn {
		out[i] = make([]float32, e.setup.Dim)
		e.dev.Read(out[i], s.aux[at])
		if e.setup.method.Edges == Clocks {
			e.addMail(out[i], s)
		}
	}
	return out
}

// addMail adds beta times what lies unread in the mailbox, for the other end may have read its half: together they sum to zero.
func (e *evaluator) addMail(dual []float32, s *snapshot) {
	mail := make([]float32, len(dual))
	e.dev.Read(mail, s.aux[slices.Index(e.setup.Algo.Aux(), "mail")])
	beta := float32(e.setup.Config.Beta)
	for k, v := range mail {
		dual[k] += float32(beta * v)
	}
}

// dualTrack is the squared distance of the duals from where they lead: a multiple of (∇F - ∇f_i)(xbar), where f_i carries its weight in F.
func (e *evaluator) dualTrack(duals [][]float32, mean *point) Num {
	c := e.setup.Config
	_, multiple := e.setup.Algo.(algo.Tracker).Tracked(c.Alpha, c.Eta.V)
	if math.IsInf(multiple, 0) { // no dual gain: they lead nowhere
		return Num(math.NaN())
	}
	sum := 0.0
	for i, l := range duals {
		weight := e.setup.gain(i)
		for k, v := range l {
			to := mean.full[k] - float64(weight*float64(mean.shards[i][k]))
			diff := float64(v) - float64(multiple*to)
			sum += float64(diff * diff)
		}
	}
	return Num(sum)
}

func dualSum(duals [][]float32) Num {
	sq := 0.0
	for k := range duals[0] {
		s := 0.0
		for _, l := range duals {
			s += float64(l[k])
		}
		sq += float64(s * s)
	}
	return Num(math.Sqrt(sq))
}

func meanModel(models [][]float32) []float64 {
	mean := make([]float64, len(models[0]))
	for _, m := range models {
		for k, v := range m {
			mean[k] += float64(v)
		}
	}
	for k := range mean {
		mean[k] /= float64(len(models))
	}
	return mean
}

func consensus(models [][]float32, mean []float64) (sum, largest Num) {
	for _, m := range models {
		sq := squaredDistance(m, mean)
		sum += Num(sq)
		largest = max(largest, Num(sq))
	}
	return sum, largest
}

// fillScores enters objective, gradient and test results: worst, least, mean and largest over the agents, and those of the mean model.
func fillScores(r *Row, agents []*point, mean *point) {
	r.TrainLossAvg, r.GradSqAvg = Num(mean.loss), Num(mean.gradSq)
	r.TrainLossWorst, r.GradSqWorst = Num(math.Inf(-1)), Num(math.Inf(-1))
	r.TestAccMin = Num(math.Inf(1))
	n := float64(len(agents))
	for _, p := range agents {
		r.TrainLossWorst = max(r.TrainLossWorst, Num(p.loss)) // max keeps a NaN
		r.GradSqWorst = max(r.GradSqWorst, Num(p.gradSq))
		acc, loss := p.test.rates()
		r.TestLossMean += Num(loss / n)
		r.TestAccMean += Num(acc / n)
		r.TestAccMin, r.TestAccMax = min(r.TestAccMin, Num(acc)), max(r.TestAccMax, Num(acc))
	}
	acc, loss := mean.test.rates()
	r.TestAccAvg, r.TestLossAvg = Num(acc), Num(loss)
	r.TestTop5Avg = Num(mean.test.hits5 / float64(mean.test.examples))
}

// rates returns accuracy and mean cross entropy.
func (s score) rates() (acc, loss float64) {
	return s.hits / float64(s.examples), s.loss / float64(s.examples)
}
