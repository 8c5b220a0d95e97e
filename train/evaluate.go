package train

import (
	"errors"
	"math"
	"slices"
	"sync"

	"fspda/device"
	"fspda/train/algo"
	"fspda/train/config"
	"fspda/train/memory"
	"fspda/train/snapshot"
)

// evaluator turns the agents' snapshots of one iteration into a Row. It only reads: no metric
// changes a trajectory. Sums are accumulated in float64 in a fixed order, each product rounded by
// itself (the conversions forbid fusing), so neither the number of workers nor that of devices nor
// the processor's architecture changes a bit.
type evaluator struct {
	setup   *Setup
	places  []Place
	workers int // of all places
	watch   observer
	stop    <-chan struct{} // closed when evaluations shall end; nil: never

	batches sync.Pool   // *device.Batch of evalChunk examples
	free    []sync.Pool // *probe, by place
}

// probe is one worker's scratch space at a place. All but x and buffers is of full metrics alone.
type probe struct {
	Place
	buffered      Buffered // the model; nil: the network has no batch norm
	at            int      // number of the place
	x, buffers, g device.Vector
	host          []float32
	shard         []float64 // gradient of one f_i
	full          []float64 // gradient of F
}

// subject is a model to be evaluated.
type subject struct {
	x           []float32
	buffers     [][]float32 // of its batch norm; more than one are scored in turn; empty without batch norm
	recalibrate bool        // its buffers are to be measured
}

func (s subject) equal(o subject) bool {
	return s.recalibrate == o.recalibrate && slices.Equal(s.x, o.x) && slices.EqualFunc(s.buffers, o.buffers,
		slices.Equal)
}

// point is what a model is worth: objective, its gradient, and the test set.
type point struct {
	loss, gradSq float64 // NaN where only the test set is looked at
	test         score
	buffers      []float32   // that were measured, where asked for
	shards       [][]float32 // gradient of each f_i, where asked for
	full         []float64
	err          error
}

// score is the sum of what a model makes of examples.
type score struct {
	loss, hits, hits5 float64
	examples          int
}

// evaluation is a Row and the mean model that it is about.
type evaluation struct {
	Row
	mean    []float32
	buffers []float32 // nil without batch norm
}

func newEvaluator(s *Setup, places []Place) *evaluator {
	e := &evaluator{setup: s, places: places, workers: s.Threads, watch: noObserver{}, free: make([]sync.Pool, len(places))}
	if _, ok := places[0].Device.(memory.Device); ok {
		e.workers = len(places) * memory.Evaluators(s, len(places))
	}
	e.batches.New = func() any { return new(device.Batch) }
	for at, p := range places {
		e.free[at].New = func() any { return e.newProbe(at, p) }
	}
	return e
}

func (e *evaluator) newProbe(at int, p Place) *probe {
	s := e.setup
	pr := &probe{Place: p, at: at, x: p.Device.NewVector(s.Dim), buffers: p.Device.NewVector(s.BufferLen())}
	if len(s.Buffers) > 0 {
		pr.buffered = p.Model.(Buffered)
	}
	if e.full() {
		pr.g, pr.host, pr.shard, pr.full = p.Device.NewVector(s.Dim), make([]float32, s.Dim), make([]float64,
			s.Dim), make([]float64, s.Dim)
	}
	return pr
}

// take lends a probe of a place.
func (e *evaluator) take(at int) *probe { return e.free[at].Get().(*probe) }

func (e *evaluator) give(pr *probe) { e.free[pr.at].Put(pr) }

// errInterrupted is what an evaluation ends with that was told to.
var errInterrupted = errors.New("train: evaluation interrupted")

func (e *evaluator) interrupted() bool {
	select {
	case <-e.stop:
		return true
	default:
		return false
	}
}

// full tells whether an evaluation looks at the training data.
func (e *evaluator) full() bool { return e.setup.Config.Metrics == config.MetricsFull }

// row evaluates the snapshots of all agents at one iteration, ordered by agent.
func (e *evaluator) row(sn []*snapshot.Snapshot) (evaluation, error) {
	models := e.read(sn, func(s *snapshot.Snapshot) device.Vector { return s.X })
	mean := meanModel(models)
	mean32 := make([]float32, e.setup.Dim)
	for k, v := range mean {
		mean32[k] = float32(v)
	}
	agents, at := e.subjects(sn, models, mean32)
	duals := e.duals(sn)
	points, err := e.points(append(agents, at), sn[0].T, duals != nil && e.full())
	if err != nil {
		return evaluation{}, err
	}
	best := points[len(agents)]
	r := evaluation{Row: e.bookkeeping(sn), mean: mean32, buffers: best.buffers}
	r.Consensus, r.ConsensusMax = consensus(models, mean)
	e.watch.evaluated(models, mean, points[:len(agents)])
	fillScores(&r.Row, points[:len(agents)], best)
	if !e.full() {
		r.TrainLossAvg, r.TrainLossWorst = batchLoss(e.setup.Weight, sn)
	}
	r.DualSum, r.DualTrack = Num(math.NaN()), Num(math.NaN())
	if duals != nil {
		r.DualSum = dualSum(duals)
	}
	if duals != nil && e.full() {
		r.DualTrack = e.dualTrack(duals, best)
	}
	return r, nil
}

// read copies one vector of every snapshot to the host.
func (e *evaluator) read(sn []*snapshot.Snapshot, of func(*snapshot.Snapshot) device.Vector) [][]float32 {
	out := make([][]float32, len(sn))
	for i, s := range sn {
		v := of(s)
		out[i] = make([]float32, v.Len())
		s.Device.Read(out[i], v)
	}
	return out
}

// subjects are the agents that are looked at, each with its own buffers, and the mean model, with
// such as the mode says.
func (e *evaluator) subjects(sn []*snapshot.Snapshot, models [][]float32, mean []float32) (agents []subject, at subject) {
	looked := e.looked(len(sn))
	for _, i := range looked {
		agents = append(agents, subject{x: models[i]})
	}
	at = subject{x: mean}
	mode := bnMode(e.setup, sn[0].T)
	if mode == "" {
		return agents, at
	}
	buffers := e.read(sn, func(s *snapshot.Snapshot) device.Vector { return s.Buffers })
	for k, i := range looked {
		agents[k].buffers = [][]float32{buffers[i]}
		if mode == config.BNLocal {
			at.buffers = append(at.buffers, buffers[i])
		}
	}
	switch mode {
	case config.BNPooled:
		at.buffers = [][]float32{pool(e.setup.Buffers, buffers)}
	case config.BNRecalibrate:
		at.recalibrate = true
	}
	return agents, at
}

// looked is the agents whose models are evaluated one by one: all, or as many as were asked for, in
// equal distances. With full metrics each costs a pass over all training data, which grows with the
// square of their number.
func (e *evaluator) looked(n int) []int {
	k := e.setup.EvaluatedAgents()
	at := make([]int, k)
	for i := range at {
		at[i] = i * n / k
	}
	return at
}

// bookkeeping fills what needs no model: counters and step sizes.
func (e *evaluator) bookkeeping(sn []*snapshot.Snapshot) Row {
	t := sn[0].T
	r := Row{Iteration: t, Epoch: Num(e.setup.Epochs(t))}
	for _, s := range sn {
		l := s.Ledger
		r.BitsSharedSeed += l.SharedSeed
		r.BitsPacked += l.Packed
		r.BitsReference += l.Reference
		r.OverheadBits += l.Overhead
		r.WireBytes += l.WireBytes
		r.BitsTotal += e.setup.Bits(l)
		r.BitsAgentMax = max(r.BitsAgentMax, e.setup.Bits(l))
		r.GradsTotal += s.Grads
		r.FarDecodes += s.Decodes.Far
		r.LargestDecode = max(r.LargestDecode, Num(s.Decodes.Largest))
		r.Skipped += uint64(s.Scale.Skipped)
		if r.LossScale == 0 || s.Scale.Scale < float64(r.LossScale) {
			r.LossScale = Num(s.Scale.Scale)
		}
		r.Time = max(r.Time, Num(s.Time))
		r.TimeMean += Num(s.Time)
	}
	r.TimeMean /= Num(len(sn))
	if e.setup.BatchPerGradient() {
		r.Epoch = Num(float64(r.GradsTotal) / float64(len(sn)) / e.setup.PerEpoch())
	}
	alpha, eta := e.setup.Schedule.At(t)
	r.LR, r.Eta = Num(alpha), Num(eta)
	return r
}

// points evaluates each subject as of iteration t. Equal ones, as all are at the start, are
// evaluated once.
func (e *evaluator) points(subjects []subject, t int, shards bool) ([]*point, error) {
	out := make([]*point, len(subjects))
	var todo []int
	for i := len(subjects) - 1; i >= 0; i-- { // the mean first, so that it keeps the shards' gradients
		for _, j := range todo {
			if subjects[i].equal(subjects[j]) {
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
	for _, team := range e.teams(len(todo)) {
		wg.Go(func() {
			for i := range work {
				out[i].err = e.measure(out[i], subjects[i], t, shards && i == len(subjects)-1, team)
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
	return out, joined(errs)
}

// joined is errors.Join for evaluations side by side: what went wrong in one of them is not hidden
// by others that were told to stop meanwhile.
func joined(errs []error) error {
	wrong := slices.DeleteFunc(slices.Clone(errs), func(err error) bool {
		return err == nil ||
			errors.Is(err, errInterrupted)
	})
	if len(wrong) > 0 {
		return errors.Join(wrong...)
	}
	return errors.Join(errs...)
}

// measure evaluates one model on every shard, if at all, at the first place of the team, and on the
// test set at all of them.
func (e *evaluator) measure(p *point, s subject, t int, keep bool, team []int) error {
	var all []*probe
	for _, at := range team {
		pr := e.take(at)
		defer e.give(pr)
		pr.Device.Write(pr.x, s.x)
		all = append(all, pr)
	}
	pr := all[0]
	p.loss, p.gradSq = math.NaN(), math.NaN()
	if e.full() {
		if err := e.objective(p, pr, keep); err != nil {
			return err
		}
	}
	if s.recalibrate {
		b, err := e.recalibrate(pr)
		if err != nil {
			return err
		}
		s.buffers = [][]float32{b}
	}
	if pr.buffered == nil {
		return e.test(p, all, t)
	}
	p.buffers = s.buffers[0]
	if len(s.buffers) > 1 {
		p.buffers = pool(e.setup.Buffers, s.buffers)
	}
	for _, b := range s.buffers {
		for _, pr := range all {
			pr.Device.Write(pr.buffers, b)
		}
		if err := e.test(p, all, t); err != nil {
			return err
		}
	}
	return nil
}

// objective computes F and its gradient at pr.x. keep also keeps the gradient of each f_i.
func (e *evaluator) objective(p *point, pr *probe, keep bool) error {
	p.loss, p.gradSq = 0, 0
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
	return nil
}

// shard computes f_i and its gradient over a whole shard at pr.x, in pr.shard.
func (e *evaluator) shard(pr *probe, shard []int32) (float64, error) {
	b := e.batches.Get().(*device.Batch)
	defer e.batches.Put(b)
	clear(pr.shard)
	total := 0.0
	chunk := e.setup.EvalChunk()
	for from := 0; from < len(shard); from += chunk {
		if e.interrupted() {
			return 0, errInterrupted
		}
		part := shard[from:min(from+chunk, len(shard))]
		if err := e.setup.Set.Train.Gather(b, part); err != nil {
			return 0, err
		}
		loss, err := pr.grad(*b)
		if err != nil {
			return 0, err
		}
		w := float64(len(part)) / float64(len(shard))
		total += float64(w * loss)
		pr.Device.Read(pr.host, pr.g)
		for k, v := range pr.host {
			pr.shard[k] += float64(w * float64(v))
		}
	}
	return total, nil
}

// readTest fills dst with examples from to to-1 of those given, or of the whole test set where
// none are.
func readTest(s *Setup, dst *device.Batch, examples []int32, from, to int) error {
	if len(examples) > 0 {
		return s.Set.Test.Gather(dst, examples[from:to])
	}
	return s.Set.Test.Batch(dst, from, to)
}

// score is Model.Score, with the buffers where there are any.
func (pr *probe) score(b device.Batch) (loss, hits, hits5 float64, err error) {
	if pr.buffered != nil {
		return pr.buffered.ScoreWith(pr.x, pr.buffers, b)
	}
	return pr.Model.Score(pr.x, b)
}

// duals reads the vectors that the algorithm says sum to zero, or returns nil where it has none.
func (e *evaluator) duals(sn []*snapshot.Snapshot) [][]float32 {
	tr, ok := e.setup.Algo.(algo.Tracker)
	if !ok {
		return nil
	}
	name, _ := tr.Tracked(e.setup.Config.Alpha, e.setup.Config.Eta.V)
	at := slices.Index(e.setup.Algo.Aux(), name)
	out := make([][]float32, len(sn))
	for i, s := range sn {
		out[i] = make([]float32, e.setup.Dim)
		s.Device.Read(out[i], s.Aux[at])
		if e.setup.Asynchronous() {
			e.addMail(out[i], s)
		}
	}
	return out
}

// addMail adds beta times what lies unread in the mailbox, for the other end may have read its
// half: together they sum to zero.
func (e *evaluator) addMail(dual []float32, s *snapshot.Snapshot) {
	mail := make([]float32, len(dual))
	s.Device.Read(mail, s.Aux[slices.Index(e.setup.Algo.Aux(), "mail")])
	beta := float32(e.setup.Config.Beta)
	for k, v := range mail {
		dual[k] += float32(beta * v)
	}
}

// dualTrack is the squared distance of the duals from where they lead: a multiple of (∇F -
// ∇f_i)(xbar), where f_i carries its weight in F.
func (e *evaluator) dualTrack(duals [][]float32, mean *point) Num {
	c := e.setup.Config
	_, multiple := e.setup.Algo.(algo.Tracker).Tracked(c.Alpha, c.Eta.V)
	if math.IsInf(multiple, 0) { // no dual gain: they lead nowhere
		return Num(math.NaN())
	}
	sum := 0.0
	for i, l := range duals {
		weight := e.setup.GradientScale(i)
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

// fillScores enters objective, gradient and test results: worst, least, mean and largest over the
// agents, and those of the mean model.
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

// grad is Model.Grad of an evaluation, which leaves no gradient out: one that fp16 skips is
// computed again with the smaller scale.
func (pr *probe) grad(b device.Batch) (loss float64, err error) {
	dst := pr.g
	dev, scaled := pr.Device.(device.LossScaler)
	for {
		var before device.LossScale
		if scaled {
			before, _ = dev.LossScale(dst)
		}
		if loss, err = pr.Model.Grad(dst, pr.x, b); err != nil || !scaled {
			return loss, err
		}
		if after, ok := dev.LossScale(dst); !ok || after.Skipped == before.Skipped || after.Scale == before.Scale {
			return loss, nil
		}
	}
}
