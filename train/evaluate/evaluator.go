package evaluate

import (
	"errors"
	"math"
	"slices"
	"sync"

	"fspda/data"
	"fspda/device"
	"fspda/train/config"
	"fspda/train/memory"
	"fspda/train/metric"
	"fspda/train/snapshot"
)

// Evaluator turns the snapshots of all agents at one iteration into a [metric.Row]. It only reads:
// no metric changes a trajectory. Sums are accumulated in float64 in a fixed order, and each
// product is rounded by itself (the conversions forbid fusing), so that no bit depends on the
// number of workers or devices or on the processor's architecture.
type Evaluator struct {
	// Stop ends evaluations with ErrInterrupted when it is closed; nil: never.
	Stop <-chan struct{}
	// Advanced is called between the parts of an evaluation, by several goroutines.
	Advanced func()

	setup   *config.Setup
	shards  [][]int32 // The examples over which full metrics are taken, by agent.
	workers []Worker
	atOnce  int // models that are evaluated at once, over all workers

	batches sync.Pool   // *device.Batch of EvalChunk examples
	free    []sync.Pool // *workspace, by worker
}

// Worker is a device and the network on it.
type Worker struct {
	Device device.Device
	Model  Model
}

// Model is the interface that an evaluation needs of a network. All methods are safe for concurrent
// use. A network with batch norm has buffers: the running means and variances. They belong to an
// agent, are never sent, and count neither as parameters nor as bits. Grad does not change them, and
// Score uses the statistics of its batch.
type Model interface {
	// Init returns the initial model of a seed.
	Init(seed uint64) []float32
	// Grad writes the gradient of the mean loss over the batch at x, including the L2 term, to dst
	// and returns that loss.
	Grad(dst, x device.Vector, b device.Batch) (loss float64, err error)
	// Score sums over the batch at x: cross entropy without the L2 term, correct predictions, and
	// targets among the five largest outputs.
	Score(x device.Vector, b device.Batch) (loss, hits, hits5 float64, err error)

	// InitBuffers returns the buffers of a fresh network: means 0, variances 1.
	InitBuffers() []float32
	// ScoreWith is Score with the statistics of the buffers.
	ScoreWith(x, buffers device.Vector, b device.Batch) (loss, hits, hits5 float64, err error)
	// Observe updates the buffers by a forward pass over the batch at x: each becomes (1-momentum)
	// of itself plus momentum times the mean, or the unbiased variance, of the batch.
	Observe(x, buffers device.Vector, b device.Batch, momentum float64) error
}

// workspace is the memory of one evaluation on a worker. g, host, shard and full are used by full
// metrics only.
type workspace struct {
	Worker
	buffered      bool // the network has batch norm
	at            int  // index of the worker
	x, buffers, g device.Vector
	host          []float32
	shard         []float64 // gradient of one f_i
	full          []float64 // gradient of F
}

// subject is a model to be evaluated.
type subject struct {
	x           []float32
	tests       testExamples
	buffers     [][]float32 // buffers of its batch norm; several are scored in turn; empty without batch norm
	recalibrate bool        // its buffers are to be measured
	testOnly    bool        // its objective is known
}

func (s subject) equal(o subject) bool {
	return s.recalibrate == o.recalibrate && s.testOnly == o.testOnly && slices.Equal(s.x, o.x) &&
		slices.EqualFunc(s.buffers, o.buffers, slices.Equal)
}

// point is the evaluation of one model: objective, its gradient, and the test set.
type point struct {
	loss, gradSq float64 // NaN if only the test set is evaluated
	test         snapshot.Score
	// The point of the mean model has the norm of the sum of all duals, and their distance from the limit.
	dualSum, dualTrack metric.Num

	buffers []float32   // buffers that scored it
	shards  [][]float32 // gradient of each f_i, if asked for
	full    []float64   // gradient of F, if asked for
	err     error
}

// newPoint makes a point of which nothing is known.
func newPoint() *point {
	nan := math.NaN()
	return &point{loss: nan, gradSq: nan, dualSum: metric.Num(nan), dualTrack: metric.Num(nan)}
}

// Evaluation is a metric.Row, the mean model that it describes, and the agents.
type Evaluation struct {
	metric.Row
	Mean    []float32
	Buffers []float32 // buffers that scored the mean model; nil without batch norm
	Agents  []AgentScore
	Sample  string // text that the mean model wrote; "": none
}

// AgentScore is the evaluation of an agent's model.
type AgentScore struct {
	Distance float64 // squared distance from the mean model
	Accuracy float64 // accuracy on the test set; NaN: its model was not evaluated
}

// New makes an Evaluator on devices of one kind.
func New(s *config.Setup, workers []Worker) *Evaluator {
	e := &Evaluator{Advanced: func() {}, setup: s, shards: s.MetricsShards(), workers: workers,
		atOnce: s.Threads, free: make([]sync.Pool, len(workers))}
	if memory.Owned(e.workers[0].Device) {
		e.atOnce = len(workers) * memory.Evaluators(s, len(workers))
	}
	e.batches.New = func() any { return new(device.Batch) }
	for at, d := range workers {
		e.free[at].New = func() any { return e.newWorkspace(at, d) }
	}
	return e
}

func (e *Evaluator) newWorkspace(at int, d Worker) *workspace {
	s := e.setup
	w := &workspace{Worker: d, at: at, buffered: len(s.Buffers) > 0,
		x: d.Device.NewVector(s.Dim), buffers: d.Device.NewVector(s.BufferLen())}
	if e.full() {
		w.g, w.host = d.Device.NewVector(s.Dim), make([]float32, s.Dim)
		w.shard, w.full = make([]float64, s.Dim), make([]float64, s.Dim)
	}
	return w
}

func (e *Evaluator) acquire(at int) *workspace { return e.free[at].Get().(*workspace) }

func (e *Evaluator) release(w *workspace) { e.free[w.at].Put(w) }

// ErrInterrupted is the error of an evaluation that was ended by Stop.
var ErrInterrupted = errors.New("evaluate: interrupted")

func (e *Evaluator) interrupted() bool {
	e.Advanced()
	select {
	case <-e.Stop:
		return true
	default:
		return false
	}
}

// full reports whether an evaluation includes the objective over the training data.
func (e *Evaluator) full() bool { return e.setup.FullMetrics() }

// Evaluate evaluates the snapshots of all agents at one iteration, ordered by agent. Agents that
// are missing count in the totals of bits and gradients only.
func (e *Evaluator) Evaluate(all []*snapshot.Snapshot) (Evaluation, error) {
	sn := snapshot.Present(all)
	models := View(sn, func(s *snapshot.Snapshot) device.Vector { return s.X })
	mean := meanModel(models)
	mean32 := e.evaluated(sn, mean)
	tests, err := testsAt(e.setup, sn[0].T)
	if err != nil {
		return Evaluation{}, err
	}
	agents, at := e.subjects(sn, models, mean32)
	for i := range agents {
		agents[i].tests = tests
	}
	at.tests = tests
	duals := e.duals(sn)
	points, err := e.points(append(agents, at), duals != nil && e.full())
	if err != nil {
		return Evaluation{}, err
	}
	best := points[len(agents)]
	for i, s := range sn {
		s.Part = snapshot.Part{Distance: squaredDistance(0, models[i], mean), L2: e.ownL2(s, models[i])}
	}
	if duals != nil {
		best.dualSum = duals.norm()
	}
	if duals != nil && e.full() {
		best.dualTrack = duals.track(best)
	}
	return e.row(all, mean32, points[:len(agents)], best)
}

// row makes the row of the parts of all agents, of the points of those that are evaluated, and of the
// point of the mean model.
func (e *Evaluator) row(all []*snapshot.Snapshot, mean []float32, agents []*point, best *point) (Evaluation, error) {
	sn := snapshot.Present(all)
	r := Evaluation{Row: e.bookkeeping(all), Mean: mean, Buffers: best.buffers}
	for _, s := range sn {
		r.Consensus += metric.Num(s.Part.Distance)
		r.ConsensusMax = max(r.ConsensusMax, metric.Num(s.Part.Distance))
	}
	r.AgentsPresent = metric.Num(len(sn))
	r.Agents = agentScores(all, agents)
	fillScores(&r.Row, agents, best)
	r.LanguageScores = languageScores(e.setup.Set, float64(r.TestLossAvg))
	if !e.full() {
		r.TrainLossAvg, r.TrainLossWorst = batchLoss(e.setup.Weight, sn)
	}
	r.TrainDataLoss = r.TrainLossAvg - e.l2(sn, mean)
	r.DualSum, r.DualTrack = best.dualSum, best.dualTrack
	var err error
	r.Sample, err = e.sample(mean, sn[0].T)
	return r, err
}

// evaluated returns the mean model: the mean of the models of agents, or of their averages of
// weights, if they keep some.
func (e *Evaluator) evaluated(sn []*snapshot.Snapshot, mean []float64) []float32 {
	if e.setup.Traits.Averages {
		mean = meanModel(View(sn, func(s *snapshot.Snapshot) device.Vector { return s.Aux[len(s.Aux)-1] }))
	}
	return rounded(mean)
}

// View returns one vector of every snapshot on the host: its own memory, which must not be changed,
// or a copy if the device has another memory.
func View(sn []*snapshot.Snapshot, of func(*snapshot.Snapshot) device.Vector) [][]float32 {
	out := make([][]float32, len(sn))
	for i, s := range sn {
		out[i] = view(s, of(s), new([]float32))
	}
	return out
}

// view returns a vector of a snapshot on the host: its own memory, or a copy in scratch.
func view(s *snapshot.Snapshot, v device.Vector, scratch *[]float32) []float32 {
	if host := s.Device.Features().Host; host != nil {
		return host.Floats(v)
	}
	if *scratch == nil {
		*scratch = make([]float32, v.Len())
	}
	s.Device.Read(*scratch, v)
	return *scratch
}

// Read copies one vector of every snapshot to the host.
func Read(sn []*snapshot.Snapshot, of func(*snapshot.Snapshot) device.Vector) [][]float32 {
	out := make([][]float32, len(sn))
	for i, s := range sn {
		v := of(s)
		out[i] = make([]float32, v.Len())
		s.Device.Read(out[i], v)
	}
	return out
}

// subjects returns the models of the evaluated agents, each with its own buffers, and the mean
// model, with the buffers of the mode.
func (e *Evaluator) subjects(sn []*snapshot.Snapshot, models [][]float32, mean []float32) (agents []subject,
	at subject) {
	evaluated := e.evaluatedAgents(len(sn))
	for _, i := range evaluated {
		agents = append(agents, subject{x: models[i]})
	}
	at = subject{x: mean}
	mode := BatchNormMode(e.setup, sn[0].T)
	if mode == "" {
		return agents, at
	}
	buffers := Read(sn, func(s *snapshot.Snapshot) device.Vector { return s.Buffers })
	for k, i := range evaluated {
		agents[k].buffers = [][]float32{buffers[i]}
		if mode == config.BNLocal {
			at.buffers = append(at.buffers, buffers[i])
		}
	}
	switch mode {
	case config.BNPooled:
		at.buffers = [][]float32{PoolBuffers(e.setup.Buffers, buffers)}
	case config.BNRecalibrate:
		at.recalibrate = true
	}
	return agents, at
}

// evaluatedAgents lists the agents whose models are evaluated: all, or eval_agents of them, evenly
// spaced. With full metrics each costs a pass over all training data, whose size grows with the
// number of agents.
func (e *Evaluator) evaluatedAgents(n int) []int {
	k := min(n, e.setup.EvaluatedAgents())
	at := make([]int, k)
	for i := range at {
		at[i] = i * n / k
	}
	return at
}

// bookkeeping fills the columns that need no model: counters and step sizes.
func (e *Evaluator) bookkeeping(sn []*snapshot.Snapshot) metric.Row {
	t := sn[0].T
	r := metric.Row{Position: metric.Position{Iteration: t, Epoch: metric.Num(e.setup.Epochs(t))}}
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
		r.Clipped += s.Clipped
		r.FarDecodes += s.Decodes.Far
		r.LargestDecode = max(r.LargestDecode, metric.Num(s.Decodes.Largest))
		r.Skipped += uint64(s.Scale.Skipped)
		if !s.Missing && (r.LossScale == 0 || s.Scale.Scale < float64(r.LossScale)) {
			r.LossScale = metric.Num(s.Scale.Scale)
		}
		if !s.Missing {
			r.Time = max(r.Time, metric.Num(s.Time))
			r.TimeMean += metric.Num(s.Time)
		}
	}
	r.TimeMean /= metric.Num(len(snapshot.Present(sn)))
	if e.setup.BatchPerGradient() {
		r.Epoch = metric.Num(float64(r.GradsTotal) / float64(len(sn)*e.setup.GradientsPerBatch()) / e.setup.PerEpoch())
	}
	alpha, eta := e.setup.Schedule.At(t)
	r.LR, r.Eta = metric.Num(alpha), metric.Num(eta)
	return r
}

// points evaluates the subjects. Equal ones, as all are at the start, are evaluated once.
func (e *Evaluator) points(subjects []subject, shards bool) ([]*point, error) {
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
			out[i] = newPoint()
			todo = append(todo, i)
		}
	}
	var wg sync.WaitGroup
	work := make(chan int)
	for _, team := range e.teams(len(todo)) {
		wg.Go(func() {
			for i := range work {
				out[i].err = e.measure(out[i], subjects[i], shards && i == len(subjects)-1, team)
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

// joined is errors.Join for concurrent evaluations. It drops ErrInterrupted if there is another
// error.
func joined(errs []error) error {
	wrong := slices.DeleteFunc(slices.Clone(errs), func(err error) bool {
		return err == nil || errors.Is(err, ErrInterrupted)
	})
	if len(wrong) > 0 {
		return errors.Join(wrong...)
	}
	return errors.Join(errs...)
}

// measure evaluates one model: the objective, with full metrics, on the first worker of the team,
// and the test set on all of them.
func (e *Evaluator) measure(p *point, s subject, keep bool, team []int) error {
	var all []*workspace
	for _, at := range team {
		w := e.acquire(at)
		defer e.release(w)
		w.Device.Write(w.x, s.x)
		all = append(all, w)
	}
	w := all[0]
	if e.full() && !s.testOnly {
		if err := e.objective(p, w, keep); err != nil {
			return err
		}
	}
	if s.recalibrate {
		b, err := e.recalibrate(w)
		if err != nil {
			return err
		}
		s.buffers = [][]float32{b}
	}
	if !w.buffered {
		return e.test(p, s.tests, all)
	}
	p.buffers = s.buffers[0]
	if len(s.buffers) > 1 {
		p.buffers = PoolBuffers(e.setup.Buffers, s.buffers)
	}
	for _, b := range s.buffers {
		for _, w := range all {
			w.Device.Write(w.buffers, b)
		}
		if err := e.test(p, s.tests, all); err != nil {
			return err
		}
	}
	return nil
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

// fillScores fills objective, gradient and test columns.
func fillScores(r *metric.Row, agents []*point, mean *point) {
	r.TrainLossAvg, r.GradSqAvg = metric.Num(mean.loss), metric.Num(mean.gradSq)
	r.TrainLossWorst, r.GradSqWorst = metric.Num(math.Inf(-1)), metric.Num(math.Inf(-1))
	r.TestAccMin = metric.Num(math.Inf(1))
	n := float64(len(agents))
	for _, p := range agents {
		r.TrainLossWorst = max(r.TrainLossWorst, metric.Num(p.loss)) // max keeps a NaN
		r.GradSqWorst = max(r.GradSqWorst, metric.Num(p.gradSq))
		acc, loss := p.test.Rates()
		r.TestLossMean += metric.Num(loss / n)
		r.TestAccMean += metric.Num(acc / n)
		r.TestAccMin, r.TestAccMax = min(r.TestAccMin, metric.Num(acc)), max(r.TestAccMax, metric.Num(acc))
	}
	acc, loss := mean.test.Rates()
	r.TestAccAvg, r.TestLossAvg = metric.Num(acc), metric.Num(loss)
	r.TestTop5Avg = metric.Num(mean.test.Hits5 / float64(mean.test.Examples))
}

// languageScores returns perplexity and bits per byte of a loss in nats a token.
func languageScores(set *data.Set, loss float64) metric.LanguageScores {
	s := metric.LanguageScores{Perplexity: metric.Num(math.NaN()), BitsPerByte: metric.Num(math.NaN())}
	if set.Text == nil {
		return s
	}
	s.Perplexity = metric.Num(math.Exp(loss))
	if bytes := set.BytesPerToken(); bytes > 0 {
		s.BitsPerByte = metric.Num(loss / math.Ln2 / bytes)
	}
	return s
}

// squaredDistance returns sq plus |x - mean|².
func squaredDistance(sq float64, x []float32, mean []float64) float64 {
	for k, v := range x {
		d := float64(v) - mean[k]
		sq += float64(d * d)
	}
	return sq
}

// batchLoss returns the mean loss of the agents' batches since the last row, weighted as in F, and
// the mean loss of the worst agent. Agents without a batch do not count; NaN if none had a batch.
func batchLoss(weight []float64, sn []*snapshot.Snapshot) (mean, worst metric.Num) {
	total, worst := 0.0, metric.Num(math.Inf(-1))
	for _, s := range sn {
		if s.Losses.Grads == 0 {
			continue
		}
		loss := s.Losses.Loss / float64(s.Losses.Grads)
		mean += metric.Num(weight[s.Agent] * loss)
		total += weight[s.Agent]
		worst = max(worst, metric.Num(loss))
	}
	if total == 0 {
		return metric.Num(math.NaN()), metric.Num(math.NaN())
	}
	return mean / metric.Num(total), worst
}

// l2 returns the L2 term in TrainLossAvg: the L2 term of the mean model, or, without the objective,
// the mean L2 term of the agents that had a batch, weighted as in batchLoss.
func (e *Evaluator) l2(sn []*snapshot.Snapshot, mean []float32) metric.Num {
	if e.full() {
		return metric.Num(e.setup.L2(mean))
	}
	sum, total := 0.0, 0.0
	for _, s := range sn {
		if s.Losses.Grads > 0 {
			sum += float64(e.setup.Weight[s.Agent] * s.Part.L2)
			total += e.setup.Weight[s.Agent]
		}
	}
	return metric.Num(sum / total)
}

// ownL2 returns the L2 term of an agent's model if l2 asks for it.
func (e *Evaluator) ownL2(s *snapshot.Snapshot, x []float32) float64 {
	if e.full() || s.Losses.Grads == 0 {
		return 0
	}
	return e.setup.L2(x)
}

// agentScores returns the distances of all present models from the mean, and the accuracies of the
// evaluated ones.
func agentScores(all []*snapshot.Snapshot, evaluated []*point) []AgentScore {
	scores := make([]AgentScore, len(all))
	present := make([]*AgentScore, 0, len(all))
	for i, s := range all {
		scores[i] = AgentScore{math.NaN(), math.NaN()}
		if !s.Missing {
			scores[i].Distance = s.Part.Distance
			present = append(present, &scores[i])
		}
	}
	for k, p := range evaluated {
		present[k*len(present)/len(evaluated)].Accuracy, _ = p.test.Rates()
	}
	return scores
}
