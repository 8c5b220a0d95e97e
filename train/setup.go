package train

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"fspda/data"
	"fspda/dist"
	"fspda/train/algo"
	"fspda/train/simnet"
)

// Setup is a run with nothing left to choose. Make one with Config.Resolve.
type Setup struct {
	Config   Config // resolved: what was auto is a number or a name
	Warnings []string

	Set        *data.Set
	Shards     [][]int32 // per agent, indices into Set.Train
	Weight     []float64 // of each f_i in F; they sum to 1
	Graph      *dist.Graph
	Process    dist.Process
	Mask       dist.Mask
	Mixing     *dist.Mixing    // the fixed matrix W; nil where the algorithm uses none
	Compressor dist.Compressor // of what is broadcast; nil where the algorithm has none
	Lattice    *dist.Lattice   // nil where vectors travel as they are
	Algo       algo.Algorithm
	Collective bool
	Links      *simnet.Links // simulated; nil: none
	// ComputeTimes are those of an asynchronous run, in mean gradients, or in seconds with Links.
	// With gradient_time only Mean is set.
	ComputeTimes simnet.ComputeTimes
	Schedule     Schedule
	Dim          int
	Buffers      []int // as [Buffered.BufferSizes]; nil: the network has none
	Threads      int

	method    Method
	blind     bool    // a trial: nothing is evaluated
	program   uint64  // bytes of a program of a gradient; 0: not known
	scorer    uint64  // bytes of a program of a score
	evalEvery float64 // iterations from one evaluation to the next; 0: as EvalPoints says

}

// maxThreads guards against a slip of the finger: the scheduler takes memory for each.
const maxThreads = 1024

// Check refuses values that are wrong by themselves, before any data is read. All that is wrong is
// named at once.
func (c Config) Check() error {
	var errs []error
	bad := func(key string, got any, want string, args ...any) {
		errs = append(errs, wrong(key, got, want, args...))
	}
	oneOf := func(key, got string, names ...string) {
		if !slices.Contains(names, got) {
			hint := "expected " + strings.Join(names, ", ")
			if near := Nearest(got, names); near != "" {
				hint = fmt.Sprintf("did you mean %s? %s", near, hint)
			}
			bad(key, fmt.Sprintf("%q", got), "%s", hint)
		}
	}
	atLeast := func(key string, got, least int) {
		if got < least {
			bad(key, got, "expected at least %d", least)
		}
	}
	inRange := func(key string, got float64, ok bool, want string) {
		if !ok || math.IsNaN(got) || math.IsInf(got, 0) {
			bad(key, got, "expected %s", want)
		}
	}
	oneOf("data", c.Data, data.Names()...)
	oneOf("augment", c.Augment, data.Augments()...)
	oneOf("jpeg", c.JPEG, data.Decoders()...)
	oneOf("on_bad", c.OnBad, string(data.Fail), string(data.Skip))
	atLeast("crop", c.Crop, 0)
	atLeast("image_size", c.ImageSize, 0)
	oneOf("activation", c.Activation, "sigmoid", "relu")
	oneOf("algo", c.Algo, Algorithms()...)
	oneOf("storm_start", c.StormStart, "gradient", "zero")
	oneOf("storm_lambda", c.StormLambda, "exact", "lagged")
	oneOf("dual", c.Dual, "same-time", "stale-neighbour")
	oneOf("eta_schedule", c.EtaSchedule, "coupled", "constant")
	oneOf("weights", c.Weights, "constant", "metropolis")
	oneOf("order", c.Order, "cta", "atc")
	oneOf("schedule", c.Schedule, "constant", "cosine")
	oneOf("objective", c.Objective, "agents", "samples")
	oneOf("sampling", c.Sampling, string(data.Epochs), string(data.IID), string(data.Full))
	oneOf("metrics", c.Metrics, "auto", metricsFull, metricsTest)
	oneOf("bn", c.BN, bnPooled, bnRecalibrate, bnLocal)
	oneOf("recompute", c.Recompute, "none", "blocks")
	oneOf("accounting", c.Accounting, "shared-seed", "packed", "reference")
	if !isDevice(c.Device) {
		bad("device", fmt.Sprintf("%q", c.Device),
			"expected auto, cpu, cuda, cuda:N with N from 0 on, or several as in cuda:0,1")
	}
	oneOf("precision", c.Precision, "fp32", "tf32", "fp16", "bf16")
	atLeast("iterations", c.Iterations, 1)
	atLeast("agents", c.Agents, 1)
	atLeast("batch", c.Batch, 1)
	atLeast("eval_points", c.EvalPoints, 1)
	atLeast("local_steps", c.LocalSteps, 0)
	atLeast("eval_agents", c.EvalAgents, 0)
	atLeast("eval_test", c.EvalTest, 0)
	atLeast("bn_batches", c.BNBatches, 1)
	atLeast("keep_checkpoints", c.Keep, 1)
	atLeast("accumulate", c.Accum, 1)
	if c.Threads < 0 || c.Threads > maxThreads {
		bad("threads", c.Threads, "expected 0, for all cores, to %d", maxThreads)
	}
	if c.Data == "synthetic" || c.Data == "synthetic-images" {
		atLeast("data_train", c.DataTrain, 10)
		atLeast("data_test", c.DataTest, 10)
	}
	inRange("alpha", c.Alpha, c.Alpha > 0, "a step size above 0")
	inRange("eta", c.Eta.V, c.Eta.V >= 0, "0 or more, or auto")
	inRange("beta", c.Beta, c.Beta >= 0, "0 or more")
	inRange("gamma", c.Gamma, true, "a finite number")
	inRange("theta", c.Theta.V, true, "a finite number, or auto")
	oneOf("wire", c.Wire, string(dist.FP32), string(dist.FP16), string(dist.BF16))
	oneOf("norms", c.Norms, "tensor", "flat")
	oneOf("swarm", c.Swarm, "nonblocking", "blocking")
	oneOf("initiator", c.Initiator, "global", "degree")
	oneOf("reference_bits", c.PaperBits, "honest", "published")
	oneOf("clock", c.Clock, ClockVirtual, ClockReal)
	inRange("gradient_time", c.GradientTime, c.GradientTime >= 0, "0 or more seconds")
	inRange("give_up", c.GiveUp, c.GiveUp > 0 && c.GiveUp <= 1e6, "above 0 and at most 1e6 seconds")
	inRange("drop_after", c.DropAfter, c.DropAfter == 0 || c.DropAfter >= 1 && c.DropAfter <= 1e9,
		"0, for never, or 1 to 1e9 seconds")
	oneOf("coef", c.Coef, string(algo.Inverse), string(algo.One), string(algo.Printed))
	inRange("c_max", c.CMax, c.CMax > 0, "a coefficient above 0")
	inRange("contacts", c.Contacts, c.Contacts >= 0, "0 or more")
	inRange("a_x", c.AX, c.AX > 0 && c.AX <= 1, "above 0 and at most 1: the weight of the newest sample")
	inRange("a_lambda", c.ALambda, c.ALambda > 0 && c.ALambda <= 1,
		"above 0 and at most 1: the weight of the newest sample")
	inRange("share", c.Share, c.Share > 0 && c.Share <= 1, "above 0 and at most 1: the share c of the averaging step")
	inRange("outer_step", c.OuterStep, c.OuterStep > 0, "a step size above 0; 1 goes where the local steps went")
	inRange("delta", c.Delta, c.Delta > 0 && c.Delta <= 0.5, "above 0 and at most 0.5: W~ lies between W and (I+W)/2")
	inRange("kappa", c.Kappa, c.Kappa >= 0 && c.Kappa < 1, "at least 0 and below 1")
	inRange("rho", c.Rho.V, c.Rho.Auto || c.Rho.V > 0, "a penalty above 0, or auto")
	inRange("momentum", c.Momentum, c.Momentum >= 0 && c.Momentum < 1, "at least 0 and below 1")
	inRange("weight_decay", c.Decay, c.Decay >= 0, "0 or more")
	inRange("clip_norm", c.ClipNorm, c.ClipNorm >= 0, "0, for no limit, or a norm above it")
	inRange("epochs", c.Epochs, c.Epochs >= 0, "0, or a number of epochs above it")
	inRange("eval_epochs", c.EvalEpochs, c.EvalEpochs >= 0, "0, or a number of epochs above it")
	oneOf("decay", c.Decays, "all", "weights")
	inRange("label_smoothing", c.Smoothing, c.Smoothing >= 0 && c.Smoothing < 1, "at least 0 and below 1")
	inRange("density", c.Density, c.Density > 0 && c.Density <= 1,
		"above 0 and at most 1: the share of coordinates that an exchange carries")
	inRange("warmup", c.Warmup, c.Warmup >= 0, "0 or more epochs")
	inRange("checkpoint_every", c.Checkpoint, c.Checkpoint == 0 || c.Checkpoint >= 1e-3 && c.Checkpoint <= 1e9,
		"0, or 0.001 to 1e9 seconds")
	return errors.Join(errs...)
}

// isDevice tells whether a name is that of a device, or of several, which need not be there.
func isDevice(name string) bool {
	kind, number, numbered := strings.Cut(name, ":")
	if !numbered {
		return kind == "auto" || kind == "cpu" || kind == "cuda"
	}
	seen := map[uint64]bool{}
	for n := range strings.SplitSeq(number, ",") {
		i, err := strconv.ParseUint(n, 10, 16)
		if kind != "cuda" || err != nil || seen[i] {
			return false
		}
		seen[i] = true
	}
	return true
}

// Resolve builds everything the configuration names and checks that it fits together: names, the
// split, batch against shard, the graph, and step sizes against the stable region. It changes
// nothing outside itself.
func (c Config) Resolve(set *data.Set, m Model) (*Setup, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	s := &Setup{Config: c, Set: set, Dim: m.Dim(), Threads: c.Threads, method: c.method()}
	if s.Threads == 0 {
		s.Threads = runtime.NumCPU()
	}
	s.Collective = s.method.Edges == EveryPair
	if b, ok := m.(Buffered); ok {
		s.Buffers = b.BufferSizes()
	}
	err := s.split()
	if err != nil { // first, for a graph of more agents than examples may not fit into memory
		return nil, err
	}
	if err := s.settleEpochs(); err != nil {
		return nil, err
	}
	if err := s.connect(m.Sizes()); err != nil {
		return nil, err
	}
	if err := s.steps(); err != nil {
		return nil, err
	}
	s.settleMetrics()
	s.Warnings = append(s.Warnings, set.Notes...)
	s.warnSlowEvaluation()
	s.Algo = s.method.New(s)
	if z, ok := m.(Sized); ok {
		if s.program, s.scorer, err = z.ProgramBytes(min(s.MicroBatch(), s.BatchSize()), s.EvalChunk()); err != nil {
			return nil, err
		}
	}
	return s, s.checkRounds()
}

// split deals the training data out and opens a loader on each shard once, which refuses a batch
// larger than the shard.
func (s *Setup) split() error {
	c := &s.Config
	p, err := data.ParsePartition(c.Partition)
	if err != nil {
		return &ConfigError{Key: "partition", Err: err}
	}
	c.Partition = p.String()
	if s.Shards, err = p.Split(s.Set.Train.Labels, s.Set.Classes, c.Agents, c.Seed); err != nil {
		return &ConfigError{Key: "partition", Got: c.Partition, Err: err}
	}
	total := 0
	for i, shard := range s.Shards {
		if _, err := data.NewOrder(shard, i, c.Batch, data.Sampling(c.Sampling), c.Seed); err != nil {
			return &ConfigError{Key: "batch", Got: fmt.Sprint(c.Batch), Err: err}
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

// GradientScale is what agent i's gradient is multiplied by, so that the agents' mean direction is
// the gradient of F: n times its weight.
func (s *Setup) GradientScale(i int) float64 {
	if s.Config.Objective == "agents" {
		return 1
	}
	return float64(len(s.Weight)) * s.Weight[i]
}

// connect builds graph, edge process and mask for tensors of the given sizes.
func (s *Setup) connect(sizes []int) error {
	c := &s.Config
	err := s.admit()
	if err != nil {
		return err
	}
	if s.Graph, err = dist.ParseGraph(c.Graph, c.Agents, c.Seed); err != nil {
		return &ConfigError{Key: "graph", Err: err}
	}
	if s.Process, err = dist.ParseProcess(c.Edges, s.Graph, c.Seed); err != nil {
		return &ConfigError{Key: "edges", Err: err}
	}
	if s.Mask, err = dist.ParseMask(c.Mask, c.Density, sizes, c.Seed); err != nil {
		return &ConfigError{Key: "mask", Err: err}
	}
	c.Graph, c.Edges, c.Mask = s.Graph.String(), s.Process.String(), s.Mask.String()
	return errors.Join(s.settleRounds(), s.mix(), s.compress(sizes), s.admitWire(), s.readLinks(), s.settleClocks(),
		s.checkRealTime())
}

// mix makes the fixed matrix W of an algorithm that averages with it.
func (s *Setup) mix() (err error) {
	c := &s.Config
	if !s.method.Mixing {
		return nil
	}
	if s.Graph.N > maxSpectrum {
		return wrong("agents", c.Agents,
			"%s needs the spectrum of its mixing matrix, which takes too long for so many (limit %d): use fewer, or an algorithm without one (%s)",
			c.Algo, maxSpectrum, withFeature(func(m Method) bool { return !m.Mixing }))
	}
	if s.Mixing, err = dist.ParseMixing(c.Mixing, s.Graph); err != nil {
		return &ConfigError{Key: "mixing", Err: err}
	}
	c.Mixing = s.Mixing.String()
	return nil
}

// steps settles the step sizes and the schedule.
func (s *Setup) steps() error {
	c := &s.Config
	s.settleRho()
	s.settleTheta()
	if !s.method.Dual {
		c.Eta = AutoFloat{}
	} else if c.Eta.Auto {
		c.Eta = AutoFloat{V: s.autoEta()}
	}
	warnings, err := s.stability()
	if err != nil {
		return err
	}
	s.Warnings = append(s.Warnings, warnings...)
	if s.method.Exact && c.Sampling != string(data.Full) {
		s.Warnings = append(s.Warnings,
			fmt.Sprintf("%s is stated for exact gradients and ends near the optimum only with sampling %s: sampling full takes the whole shard in every iteration", c.Algo, c.Sampling))
	}
	s.Schedule = Schedule{Alpha: c.Alpha, Eta: c.Eta.V, Cosine: c.Schedule == "cosine", Warmup: c.Warmup,
		Uncoupled: c.EtaSchedule == "constant",
		PerEpoch:  s.PerEpoch(), Epochs: float64(c.Iterations) / s.PerEpoch()}
	if s.Schedule.Cosine && c.Warmup >= s.Schedule.Epochs {
		return wrong("warmup", c.Warmup,
			"the run has only %.3g epochs of %.4g iterations: warm up for fewer epochs, or train longer", s.Schedule.Epochs, s.PerEpoch())
	}
	return nil
}

// Loader opens the batches of an agent from step first on.
func (s *Setup) Loader(agent, first int) (*data.Loader, error) {
	return data.NewLoader(s.Set.Train, s.Shards[agent], agent, data.LoaderOptions{
		Batch: s.Config.Batch, Sampling: data.Sampling(s.Config.Sampling), Seed: s.Config.Seed, First: first, Ahead: 2})
}

// Bits is what a ledger comes to in the accounting that was asked for.
func (s *Setup) Bits(l dist.Ledger) uint64 { return l.Bits(dist.Accounting(s.Config.Accounting)) }

// Skew is the mean over agents of the share of their most frequent class: 1/classes where the data
// is spread evenly, 1 where each agent has one class.
func (s *Setup) Skew() float64 {
	return data.Skew(data.Histogram(s.Set.Train.Labels, s.Set.Classes, s.Shards))
}

// manyAgents is from where on it is worth to say that evaluations look at every agent.
const manyAgents = 200

func (s *Setup) warnSlowEvaluation() {
	if c := s.Config; c.Agents >= manyAgents && c.EvalAgents == 0 && c.Metrics == metricsFull {
		s.Warnings = append(s.Warnings,
			fmt.Sprintf("each of the %d evaluations passes all training data once for each of %d agents: eval_agents 10 looks at ten of them", s.EvalCount()+1, c.Agents))
	}
}

// MicroBatch is how many examples a gradient sees at once: a batch, or its accumulate-th part,
// rounded up.
func (s *Setup) MicroBatch() int {
	return (s.Config.Batch + s.Config.Accum - 1) / s.Config.Accum
}

// WireFormat is how the values of the run's messages travel.
func (s *Setup) WireFormat() dist.ValueFormat { return dist.ValueFormat(s.Config.Wire) }

// admitWire refuses short values where they are not what travels.
func (s *Setup) admitWire() error {
	c := &s.Config
	if s.WireFormat().Bits() == 32 {
		return nil
	}
	switch s.method.Edges {
	case Speakers, Pairs:
		return wrong("wire", c.Wire, "%s sends what compress says: use wire fp32, or compress with fewer bits", c.Algo)
	case Clocks:
		if c.Clock != ClockReal {
			return wrong("wire", c.Wire, "the exchanges of %s are simulated in float32: use wire fp32, clock real, or a synchronous algorithm", c.Algo)
		}
	}
	return nil
}
