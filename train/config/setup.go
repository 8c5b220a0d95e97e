package config

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"fspda/data"
	"fspda/dist"
	"fspda/internal/cgroup"
	"fspda/model"
	"fspda/train/algo"
	"fspda/train/membership"
)

// Setup is a resolved configuration: everything that it names is made and checked, and auto is
// replaced by numbers and names. Make one with [Config.Resolve].
type Setup struct {
	Config   Resolved
	Warnings []string

	data.Division
	Simulated
	Weight     []float64 // The weight of each f_i in F; weights sum to 1.
	Graph      *dist.Graph
	Process    dist.Process
	Mask       dist.Mask
	Mixing     *dist.Mixing    // The fixed matrix W; nil if the algorithm uses none.
	Compressor dist.Compressor // It codes broadcast vectors; nil if the algorithm has none.
	Lattice    *dist.Lattice   // It codes the vectors of pairs; nil if they travel uncoded.
	Algo       algo.Algorithm
	Traits     algo.Traits       // The traits of Algo.
	Files      map[string]string // digests of files that the configuration names, by key
	Schedule   Schedule
	Threads    int
	ModelSize

	method method
	evals  evaluations
}

// ModelSize is the size of the network, and of its programs on the device, and its L2 term.
type ModelSize struct {
	Dim      int   // parameters
	Buffers  []int // The lengths of the buffers of batch norm; nil if there is none.
	Programs ProgramBytes
	Batches  int                       // Batches that batch norm saw before the run, by the file of weights.
	L2       func(x []float32) float64 // L2 returns the L2 term of the loss at x; NaN if it is not known.
	// Undecayed lists the coordinates without weight decay, ascending.
	Undecayed []uint32
	Tensors   []algo.Tensor // Tensors as matrices of outputs × rest, or vectors.
	Window    int           // Tokens of an example, each with a label; 0 if examples are not windows of tokens.
	// OptimizerShare counts the operations in matrix products of the optimizer, over the operations
	// of a gradient; 0 if it has none, or if they are not known.
	OptimizerShare float64
}

// largeOptimizerShare is the share of a gradient's operations above which a warning tells what an
// optimizer costs.
const largeOptimizerShare = 0.5

// ProgramBytes is the memory of the programs of a network; 0: not known.
type ProgramBytes struct {
	Gradient uint64 // Bytes of one training gradient.
	Score    uint64 // Bytes of one evaluated chunk, with its gradient for full metrics.
	// Optimizer is the bytes of working memory of one step of the optimizer, besides vectors.
	Optimizer uint64
}

// Model is a network as Resolve sees it.
type Model interface {
	Dim() int // The length of the flat parameter vector.
	Describe() model.Description
}

// Asynchronous reports whether each agent proceeds at its own speed, without iterations in common.
func (s *Setup) Asynchronous() bool { return s.Traits.Edges.Clocks }

// tensorsOf lists the tensors of a model as matrices of outputs × rest, or vectors.
func tensorsOf(d model.Description) (tensors []algo.Tensor) {
	for _, of := range d.Tensors {
		t := algo.Tensor{Offset: of.Offset, Rows: of.Size, Name: of.Name, Hidden: of.Hidden, Blocks: of.Blocks}
		if len(of.Shape) > 1 && of.Shape[0] > 1 && of.Size > of.Shape[0] {
			t.Rows, t.Cols = of.Shape[0], of.Size/of.Shape[0]
		}
		tensors = append(tensors, t)
	}
	return tensors
}

// Resolve makes everything that the configuration names and checks that it fits together: the
// split, batch against shard, the graph, and step sizes against the stable region. It has no side
// effects.
func (c Config) Resolve(set *data.Set, m Model) (*Setup, error) {
	c.FoldNames()
	if err := c.Check(); err != nil {
		return nil, err
	}
	s := &Setup{Config: resolving(c), Division: data.Division{Set: set}, Threads: c.Threads}
	s.method, _ = c.findMethod() // Check has verified that it exists
	s.Config.Params, s.Config.Graph = c.settleParams(), c.usualGraph(s.method)
	d := m.Describe()
	s.Dim, s.Tensors, s.Undecayed, s.Buffers, s.Window = m.Dim(), tensorsOf(d), d.Undecayed, d.Buffers, d.Window
	s.Traits = s.method.New(s.settings()).Traits()
	s.Threads = cmp.Or(s.Threads, cgroup.Processors())
	for _, settle := range []func() error{func() error { return s.settleMethod(d.WeightDecay) }, s.checkText,
		s.split, // before connect: a graph of more agents than examples may not fit into memory
		s.settleEpochs, func() error { return s.connect(d.Sizes()) }, s.readDigests, s.steps} {
		if err := settle(); err != nil {
			return nil, err
		}
	}
	s.settleMetrics()
	s.sayLanguage(c)
	s.settleHeads()
	s.Warnings = append(s.Warnings, set.Notes...)
	s.warn()
	if slices.Contains(c.explicit, "eval_points") && s.Config.EvalPoints > s.Config.Iterations {
		s.Warnings = append(s.Warnings, fmt.Sprintf("eval_points %d: the run has %d iterations, and each is "+
			"evaluated once", s.Config.EvalPoints, s.Config.Iterations))
	}
	s.Algo = s.method.New(s.settings())
	s.Traits = s.Algo.Traits()
	if s.L2 = d.L2; d.L2 == nil {
		s.L2 = func([]float32) float64 { return math.NaN() }
	}
	if err := errors.Join(s.average(), s.measurePrograms(d), s.compareProducts(d), s.warnNorms(d)); err != nil {
		return nil, err
	}
	return s, errors.Join(s.checkRounds(), cmp.Or(s.refuseUnused(c), c.checkMixed(d)))
}

// compareProducts counts the matrix products of the optimizer, if it has some, as a share of a
// gradient.
func (s *Setup) compareProducts(d model.Description) error {
	o := s.Config.optimizer()
	if o.Products == nil {
		return nil
	}
	operations, scratch := o.Products(s.Config.optimizerSettings(o, s.ModelSize))
	s.Programs.Optimizer = 4 * uint64(scratch)
	if d.Operations == nil {
		return nil
	}
	gradient, err := d.Operations(s.MicroBatch())
	if err != nil || gradient == 0 {
		return err
	}
	s.OptimizerShare = operations / (gradient * float64(s.Config.Accum))
	if s.OptimizerShare > largeOptimizerShare {
		s.Warnings = append(s.Warnings, fmt.Sprintf("the matrix products of %s take %.0f %% of the operations of a "+
			"gradient's, so that a larger batch costs little", o.Name, 100*s.OptimizerShare))
	}
	return nil
}

// warnNorms warns of a batch norm of a single value: it subtracts the value from itself, so that
// what lies before it has no effect and learns nothing.
func (s *Setup) warnNorms(d model.Description) error {
	least := s.leastBatch()
	if least > 1 || d.Normed == nil { // then each channel has several values
		return nil
	}
	if values, err := d.Normed(least); err != nil || values != 1 {
		return err
	}
	s.Warnings = append(s.Warnings, "a gradient of one example has one value of a channel at a batch norm, which "+
		"makes 0 of it, so that the layers before learn nothing: use a larger batch, larger pictures, or a network "+
		"with group norm (-gn)")
	return nil
}

// leastBatch returns the fewest examples that a gradient is computed over at once.
func (s *Setup) leastBatch() int {
	batches := []int{s.Config.Batch}
	if s.Config.Sampling == string(data.Full) {
		batches = nil
		for _, shard := range s.Shards {
			batches = append(batches, len(shard))
		}
	}
	least := math.MaxInt
	for _, n := range batches {
		part := (n + s.Config.Accum - 1) / s.Config.Accum
		if rest := n % part; rest > 0 {
			part = rest
		}
		least = min(least, part)
	}
	return least
}

// measurePrograms asks a network for the memory of its programs, if it knows it.
func (s *Setup) measurePrograms(d model.Description) error {
	if d.Memory == nil {
		return nil
	}
	gradient, score, err := d.Memory(s.MicroBatch(), s.EvalChunk())
	if err == nil && s.FullMetrics() { // which evaluate gradients, too
		var evaluated uint64
		evaluated, _, err = d.Memory(s.EvalChunk(), s.EvalChunk())
		score = max(score, evaluated)
	}
	s.Programs.Gradient, s.Programs.Score = gradient, score
	return err
}

// usualGraph is the key graph, or a tree for a method that needs one, unless the graph was set.
func (c Config) usualGraph(m method) string {
	if m.traits.Tree && c.Graph == Default().Graph && !slices.Contains(c.explicit, "graph") {
		return "binary-tree"
	}
	return c.Graph
}

// split divides the training data among the agents. It makes the order of each shard once, which
// refuses a batch larger than the shard.
func (s *Setup) split() error {
	c := &s.Config
	p, err := data.ParsePartition(c.Partition)
	if err != nil {
		return &Error{Key: "partition", Err: err}
	}
	c.Partition = p.String()
	if s.Division, err = s.Set.Divide(p, c.Agents, c.Seed); err != nil {
		return &Error{Key: "partition", Got: c.Partition, Err: err}
	}
	s.bendBatch()
	total := 0
	for i, shard := range s.Shards {
		if _, err := data.NewOrder(shard, i, c.Batch, data.Sampling(c.Sampling), c.Seed); err != nil {
			return &Error{Key: "batch", Got: fmt.Sprint(c.Batch), Err: err}
		}
		total += len(shard)
	}
	for _, shard := range s.Shards {
		w := 1 / float64(len(s.Shards))
		if c.Objective == "samples" {
			w = float64(len(shard)) / float64(total)
		}
		s.Weight = append(s.Weight, w)
	}
	return nil
}

// GradientScale returns the factor of agent i's gradient, n·Weight[i], so that the mean of the
// agents' gradients is the gradient of F.
func (s *Setup) GradientScale(i int) float64 {
	if s.Config.Objective == "agents" {
		return 1
	}
	return float64(len(s.Weight)) * s.Weight[i]
}

// connect makes graph, edge process and mask for tensors of the given sizes.
func (s *Setup) connect(sizes []int) error {
	c := &s.Config
	s.Members = membership.Fixed(c.Agents)
	s.bendSteps()
	err := s.admit()
	if err != nil {
		return err
	}
	if s.Graph, err = dist.ParseGraph(c.Graph, c.Agents, c.Seed); err != nil {
		return &Error{Key: "graph", Err: err}
	}
	if s.Process, err = dist.ParseProcess(string(c.Edges), s.Graph, c.Seed); err != nil {
		return &Error{Key: "edges", Err: err}
	}
	if s.Mask, err = dist.ParseMask(cmp.Or(string(c.Mask), auto), c.Density, sizes, c.Seed); err != nil {
		return &Error{Key: "mask", Err: err}
	}
	if len(s.Traits.Parts) > 1 {
		s.Mask = dist.NewParts(s.Traits.Parts, s.Dim)
	}
	if s.AllReduces() {
		s.Mask = dist.Every(s.Mask, c.LocalSteps)
	}
	c.Graph, c.Edges, c.Mask = s.Graph.String(), Chosen(s.Process.String()), Chosen(s.Mask.String())
	if s.Traits.Edges.AtRoundEnds {
		s.Process = dist.AtRoundEnds(s.Process, max(1, c.LocalSteps))
	}
	return errors.Join(s.settleRounds(), s.settleWeights(), s.mix(), s.compress(sizes), s.admitFreeze(), s.admitWire(),
		s.readLinks(), s.readMembers(), s.checkOutages(), s.settleClocks(), s.checkRealTime())
}

// mix makes the fixed mixing matrix W, if the algorithm averages with it.
func (s *Setup) mix() (err error) {
	c := &s.Config
	if !s.Traits.Mixing {
		return nil
	}
	if s.Graph.N > maxSpectrum {
		return Invalid("agents", c.Agents, "%s needs the spectrum of its mixing matrix, which takes too "+
			"long for so many (limit %d): use fewer, or an algorithm without one (%s)", c.Algo, maxSpectrum,
			strings.Join(withFeature(func(m method) bool { return !m.traits.Mixing }), ", "))
	}
	if s.Traits.HalfLazy && !strings.HasPrefix(strings.TrimSpace(c.Mixing), "half-lazy(") {
		c.Mixing = "half-lazy(" + c.Mixing + ")"
	}
	if s.Mixing, err = dist.ParseMixing(c.Mixing, s.Graph); err != nil {
		return &Error{Key: "mixing", Err: err}
	}
	c.Mixing = s.Mixing.String()
	return nil
}

// steps resolves the step sizes and the schedule.
func (s *Setup) steps() error {
	c := &s.Config
	s.bendLength()
	s.bendAlpha()
	s.bendSchedule()
	s.settleRho()
	s.settleTheta()
	s.settleGamma()
	if err := s.checkMethod(); err != nil {
		return err
	}
	if s.Traits.Exact && c.Sampling != string(data.Full) {
		s.Warnings = append(s.Warnings, fmt.Sprintf("%s is stated for exact gradients and ends near the optimum "+
			"only with sampling %s: sampling full takes the whole shard in every iteration", c.Algo, c.Sampling))
	}
	return s.makeSchedule()
}

// settleEta resolves eta auto.
func (s *Setup) settleEta() {
	if !s.Traits.Dual {
		s.Config.Eta = 0
	} else if s.Config.given.Eta.Auto {
		s.Config.Eta = s.autoEta()
	}
}

// Loader opens the batches of an agent from the given step on, with its examples of iteration t.
func (s *Setup) Loader(agent, t, step int) (*data.Loader, error) {
	return data.NewLoader(s.Set.Train, s.ShardAt(agent, t), agent, data.LoaderOptions{
		Batch: s.Config.Batch, Sampling: data.Sampling(s.Config.Sampling), Seed: s.Config.Seed, First: step, Ahead: 2})
}

// Bits returns the bits of a ledger in the accounting of the run.
func (s *Setup) Bits(l dist.Ledger) uint64 { return l.Bits(dist.Accounting(s.Config.Accounting)) }

// Skew returns the mean over the agents of the share of their most frequent class: 1/classes if the
// data is spread evenly, 1 if each agent has one class. The classes of a text are those of its
// documents, by tokens.
func (s *Setup) Skew() float64 { return data.Skew(s.Counts()) }

// manyAgents is from where on it is worth to say that evaluations look at every agent.
const manyAgents = 200

// MicroBatch returns the most examples that a gradient is computed over at once: a batch divided by
// accumulate and rounded up.
func (s *Setup) MicroBatch() int { return (s.batch() + s.Config.Accum - 1) / s.Config.Accum }

// batch returns the most examples of a batch: the size of the largest shard if a batch is a whole
// shard.
func (s *Setup) batch() (most int) {
	if s.Config.Sampling != string(data.Full) {
		return s.Config.Batch
	}
	for _, shard := range s.Shards {
		most = max(most, len(shard))
	}
	return most
}

func (s *Setup) WireFormat() dist.ValueFormat { return dist.ValueFormat(s.Config.Wire) }

// admitWire refuses a 16-bit format for algorithms that do not send plain values.
func (s *Setup) admitWire() error {
	c := &s.Config
	if s.WireFormat().Bits() == 32 {
		return nil
	}
	switch {
	case s.Traits.Code != algo.PlainCode:
		return Invalid("wire", c.Wire, "%s sends what compress says: use wire fp32, or compress with fewer bits",
			c.Algo)
	case s.Asynchronous() && c.Clock != ClockReal:
		return Invalid("wire", c.Wire, "the exchanges of %s are simulated in float32: use wire fp32, clock "+
			"real, or a synchronous algorithm", c.Algo)
	}
	return nil
}

// BatchSize returns the mean number of examples of an agent's iteration.
func (s *Setup) BatchSize() int { return int(math.Round(s.meanShard() / s.PerEpoch())) }

// VectorsPerLink returns the number of vectors that an agent posts on a link in an iteration.
func (s *Setup) VectorsPerLink() int { return s.Traits.VectorsPerLink() }

// BufferLen returns the number of values in an agent's buffers of batch norm; 0: no batch norm.
func (s *Setup) BufferLen() int {
	n := 0
	for _, size := range s.Buffers {
		n += size
	}
	return n
}
