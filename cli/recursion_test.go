//go:build !windows

package cli

import (
	"fmt"
	"iter"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fspda/data"
	"fspda/dist"
	"fspda/internal/rng"
	"fspda/model"
	"fspda/train/safetensors"
)

// recursion is a run as its method states it, in float64 and without any code of the program but
// that which draws data, graphs, edges, masks and the first model. Its settings are those that the
// flags mean, defaults included. Each method has one function of a recursion, which draws the
// method's own settings with [one] and [param] and then iterates. The functions are in the files
// recursion_*_test.go, by family, and recursions_test.go lists the methods.
type recursion struct {
	t *testing.T
	// draws is the stream of the settings.
	draws rng.Stream
	// args are the arguments of the command, but for the length of the run and its folder.
	args []string
	// runs has a file of the last checkpoint of each run of the command, by the run's length.
	runs map[int]string

	n, d, iterations int
	seed             uint64
	// optimizer is sgd, heavy-ball, nesterov, adamw, muon, gt-adam or demo.
	optimizer string
	mu, eps   float64
	decay     float64
	decoupled bool
	clip      float64
	// muonMu, nesterov, muonScale and rest are the settings of muon; rest is the step size of what is
	// no matrix over alpha.
	muonMu, rest float64
	nesterov     bool
	muonScale    string
	// corrected says that the optimizer takes the gradient with its correction.
	corrected bool
	// alpha and eta are the step sizes of the iteration, and alphaMax and etaMax their largest values.
	alpha, eta, alphaMax, etaMax float64
	// cosine says that the schedule is a cosine, and kappa by how much steps of next fall besides.
	cosine bool
	kappa  float64
	gamma  float64
	// lazy is the share of W - I in the fixed matrix, with W the Metropolis weights.
	lazy float64
	// samples says that the objective weighs samples equally, and scale has the factor of each agent's
	// gradient.
	samples bool
	scale   []float64

	edges   string
	graph   *dist.Graph
	process dist.Process
	mask    dist.Mask

	// decisions counts the choices of compressors, and ties those that rounding decides.
	decisions, ties int

	// features and labels are those of each agent's examples.
	features [][][]float64
	labels   [][]int32
	classes  int

	x   [][]float64
	opt []*direction
}

// direction is the optimizer of an agent.
type direction struct {
	m, v  []float64
	calls int
}

// pick draws one of the values.
func pick[T any](r *recursion, values ...T) T { return values[r.draws.IntN(len(values))] }

// one draws a value of a setting of the command.
func one[T any](r *recursion, setting string, values ...T) T {
	v := pick(r, values...)
	r.args = append(r.args, fmt.Sprintf("--%s=%v", setting, v))
	return v
}

// param draws a value of a setting that only a few methods have.
func param[T any](r *recursion, name string, values ...T) T {
	v := pick(r, values...)
	r.args = append(r.args, "--param", fmt.Sprintf("%s=%v", name, v))
	return v
}

// times yields the iterations, after it has set the step sizes. They are constant in rounds of h.
func (r *recursion) times(h int) iter.Seq[int] {
	return func(yield func(t int) bool) {
		fall := 1.0
		for t := range r.iterations {
			f := r.factor(t - t%h)
			r.alpha, r.eta = f*fall*r.alphaMax, f*r.etaMax
			fall *= 1 - r.kappa*fall
			if !yield(t) {
				return
			}
		}
	}
}

// factor is the share of the largest step sizes. The cosine rises in 2 iterations, and falls to a
// fifth in iteration 8.
func (r *recursion) factor(t int) float64 {
	switch {
	case !r.cosine:
		return 1
	case t < 2:
		return float64(t+1) / 3
	}
	return 0.2 + 0.4*(1+math.Cos(math.Pi*float64(t-2)/6))
}

// after returns a vector of agent i as the command has it after t iterations: in a run of that
// length, whose settings are those of args.
func (r *recursion) after(t, i int, name string) []float64 {
	r.t.Helper()
	if r.runs[t] == "" {
		dir := filepath.Join(r.t.TempDir(), "run")
		args := append(slices.Clone(r.args), "--iterations", fmt.Sprint(t), "--out", dir)
		if status, _, stderr := call(r.t, args...); status != 0 {
			r.t.Fatalf("%q: status %d\n%s", args, status, stderr)
		}
		all := checkpoints(r.t, dir)
		r.runs[t] = filepath.Join(all[len(all)-1], "agents.safetensors")
	}
	f, err := safetensors.Open(r.runs[t])
	if err != nil {
		r.t.Fatal(err)
	}
	defer f.Close()
	got, err := safetensors.Load[float32](f, fmt.Sprintf("agent%d/%s", i, name))
	if err != nil || len(got) != r.d {
		r.t.Fatalf("%s of agent %d: %d numbers, %v", name, i, len(got), err)
	}
	v := make([]float64, r.d)
	for k, x := range got {
		v[k] = float64(x)
	}
	return v
}

// open draws the data, the graph and the first model of the run that the flags describe.
func (r *recursion) open(graph, partition string) {
	t := r.t
	t.Helper()
	set, err := data.Open("synthetic", data.OpenOptions{TrainSize: 60, TestSize: 20, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	p, err := data.ParsePartition(partition)
	if err != nil {
		t.Fatal(err)
	}
	division, err := set.Divide(p, r.n, r.seed)
	if err != nil {
		t.Fatal(err)
	}
	net, err := model.MLP(model.MLPOptions{Inputs: set.Features(), Classes: set.Classes})
	if err != nil {
		t.Fatal(err)
	}
	r.d, r.classes = net.Dim(), set.Classes
	for i, shard := range division.Shards {
		l, err := data.NewLoader(set.Train, shard, i, data.LoaderOptions{Batch: 1, Sampling: data.Full, Seed: r.seed})
		if err != nil {
			t.Fatal(err)
		}
		b, err := l.Next()
		if err != nil {
			t.Fatal(err)
		}
		var examples [][]float64
		for k := range b.N() {
			row := make([]float64, set.Features())
			for j := range row {
				if b.X != nil {
					row[j] = float64(b.X[k*len(row)+j])
					continue
				}
				at := k
				if b.Rows != nil {
					at = int(b.Rows[k])
				}
				row[j] = float64(float32(b.Bytes[at*len(row)+j])*b.Scale[0] + b.Shift[0])
			}
			examples = append(examples, row)
		}
		r.features, r.labels = append(r.features, examples), append(r.labels, slices.Clone(b.Y))
		weight := 1.0
		if r.samples {
			weight = float64(r.n*len(shard)) / 60
		}
		r.scale = append(r.scale, weight)
		x := make([]float64, r.d)
		for k, v := range net.Init(r.seed) {
			x[k] = float64(v)
		}
		r.x, r.opt = append(r.x, x), append(r.opt, &direction{})
	}
	if r.graph, err = dist.ParseGraph(graph, r.n, r.seed); err != nil {
		t.Fatal(err)
	}
	if r.process, err = dist.ParseProcess(r.edges, r.graph, r.seed); err != nil {
		t.Fatal(err)
	}
	if r.mask, err = dist.ParseMask("all", 1, r.tensors(), r.seed); err != nil {
		t.Fatal(err)
	}
}

// tensors lists the lengths of the tensors: weights by output, then biases.
func (r *recursion) tensors() []int { return []int{r.d - r.classes, r.classes} }

// masked draws the mask of exchanges.
func (r *recursion) masked(masks ...string) {
	mask, density := one(r, "mask", masks...), one(r, "density", 0.3, 0.5)
	var err error
	if r.mask, err = dist.ParseMask(mask, density, r.tensors(), r.seed); err != nil {
		r.t.Fatal(err)
	}
}

// loss returns the gradient of agent i's cross entropy at x: weights by output, then biases.
func (r *recursion) loss(i int, x []float64) []float64 {
	g := make([]float64, r.d)
	inputs := (r.d - r.classes) / r.classes
	for k, f := range r.features[i] {
		z, most, sum := make([]float64, r.classes), math.Inf(-1), 0.0
		for c := range z {
			z[c] = x[inputs*r.classes+c]
			for j, v := range f {
				z[c] += x[c*inputs+j] * v
			}
			most = max(most, z[c])
		}
		for c := range z {
			z[c] = math.Exp(z[c] - most)
			sum += z[c]
		}
		for c := range z {
			p := z[c] / sum
			if int32(c) == r.labels[i][k] {
				p--
			}
			p /= float64(len(r.features[i]))
			g[inputs*r.classes+c] += p
			for j, v := range f {
				g[c*inputs+j] += p * v
			}
		}
	}
	return g
}

// shorten is clip_norm, before weight decay.
func (r *recursion) shorten(g []float64) {
	if norm := math.Sqrt(dot(g, g)); r.clip > 0 && norm+1e-6 > r.clip {
		for k := range g {
			g[k] *= r.clip / (norm + 1e-6)
		}
	}
}

// grad returns what agent i gives its method as a gradient at x.
func (r *recursion) grad(i int, x []float64) []float64 {
	g := r.loss(i, x)
	r.shorten(g)
	for k := range g {
		if !r.decoupled {
			g[k] += r.decay * x[k]
		}
		g[k] *= r.scale[i]
	}
	return g
}

// direct is the optimizer of agent i for a gradient that was taken at x.
func (r *recursion) direct(i int, g, x []float64) []float64 {
	o, u := r.opt[i], slices.Clone(g)
	if o.m == nil {
		o.m, o.v = make([]float64, len(g)), make([]float64, len(g))
	}
	o.calls++
	if r.optimizer == "muon" {
		r.muon(o, g, u, x)
		return u
	}
	for k := range g {
		switch r.optimizer {
		case "heavy-ball", "nesterov":
			o.m[k] = r.mu*o.m[k] + g[k]
			u[k] = o.m[k]
			if r.optimizer == "nesterov" {
				u[k] = g[k] + r.mu*o.m[k]
			}
		case "adamw":
			o.m[k] = 0.9*o.m[k] + 0.1*g[k]
			o.v[k] = 0.999*o.v[k] + 0.001*g[k]*g[k]
			s := float64(o.calls)
			u[k] = o.m[k] / (1 - math.Pow(0.9, s)) / (math.Sqrt(o.v[k]/(1-math.Pow(0.999, s))) + r.eps)
		case "gt-adam":
			o.m[k] = 0.9*o.m[k] + 0.1*g[k]
			o.v[k] = min(0.999*o.v[k]+0.001*g[k]*g[k], 1e6)
			u[k] = o.m[k] / math.Sqrt(o.v[k]+r.eps)
		}
		if r.decoupled {
			u[k] += r.decay * x[k]
		}
	}
	return u
}

// descend returns the step of agent i at x with correction c of the direction: alpha·(Opt(g) + c)
// or alpha·Opt(g + c).
func (r *recursion) descend(i int, x, c []float64) []float64 {
	g := r.grad(i, x)
	if c == nil {
		c = make([]float64, r.d)
	}
	var u []float64
	if r.corrected {
		u = r.direct(i, plus(g, 1, c), x)
	} else {
		u = plus(r.direct(i, g, x), 1, c)
	}
	return scaled(r.alpha, u)
}

// exchanges calls do for each edge that is active at t, with the Metropolis weight of the active
// graph.
func (r *recursion) exchanges(t int, do func(e dist.Event, w float64)) {
	events := r.process.Active(nil, t)
	degree := make([]int, r.n)
	for _, e := range events {
		degree[e.From]++
		degree[e.To]++
	}
	for _, e := range events {
		do(e, 1/float64(1+max(degree[e.From], degree[e.To])))
	}
}

// differences returns Σ w·(own - other) of each agent over the edges that are active at t, on their
// masks. The weights are those of Metropolis or 1.
func (r *recursion) differences(t int, v [][]float64, metropolis bool) [][]float64 {
	out := zeroes(r.n, r.d)
	r.exchanges(t, func(e dist.Event, w float64) {
		if !metropolis {
			w = 1
		}
		for _, k := range r.mask.Draw(nil, t, e.From, e.To) {
			diff := w * (v[e.From][k] - v[e.To][k])
			out[e.From][k] += diff
			out[e.To][k] -= diff
		}
	})
	return out
}

// mixed returns W v, with Metropolis weights of the active graph.
func (r *recursion) mixed(t int, v [][]float64) [][]float64 {
	out := r.differences(t, v, true)
	for i := range out {
		out[i] = plus(v[i], -1, out[i])
	}
	return out
}

// fixed returns W v with the fixed matrix: Metropolis weights of the whole graph, and a share of
// them if it is lazy.
func (r *recursion) fixed(v [][]float64) [][]float64 {
	out := zeroes(r.n, r.d)
	for i := range out {
		out[i] = v[i]
		for _, j := range r.graph.Neighbours(i) {
			w := 1 / float64(1+max(r.graph.Degree(i), r.graph.Degree(j)))
			out[i] = plus(out[i], r.lazy*w, plus(v[j], -1, v[i]))
		}
	}
	return out
}

// stepAll returns x - alpha·(u + c) of all agents; c may be nil.
func (r *recursion) stepAll(c [][]float64) (next [][]float64) {
	for i, x := range r.x {
		var of []float64
		if c != nil {
			of = c[i]
		}
		next = append(next, plus(x, -1, r.descend(i, x, of)))
	}
	return next
}

func dot(a, b []float64) (s float64) {
	for k := range a {
		s += a[k] * b[k]
	}
	return s
}

// plus returns a + f·b.
func plus(a []float64, f float64, b []float64) []float64 {
	sum := slices.Clone(a)
	for k := range sum {
		sum[k] += f * b[k]
	}
	return sum
}

func scaled(f float64, a []float64) []float64 { return plus(make([]float64, len(a)), f, a) }

func zeroes(n, d int) (all [][]float64) {
	for range n {
		all = append(all, make([]float64, d))
	}
	return all
}

func mean(v [][]float64) []float64 {
	sum := make([]float64, len(v[0]))
	for _, a := range v {
		sum = plus(sum, 1/float64(len(v)), a)
	}
	return sum
}

// Each method, run by the command with random settings, comes to the models of its recursion in
// float64. Only rounding is between them: settings, their defaults and auto included.
func TestRunsAreTheirRecursions(t *testing.T) {
	instances := 1
	if os.Getenv("FSPDA_LONG") != "" {
		instances = 12
	}
	for _, m := range replayed {
		name := strings.TrimSpace(m.algo + " " + m.form)
		for k := range instances {
			t.Run(fmt.Sprint(name, " ", k), func(t *testing.T) {
				t.Parallel()
				replay(t, m, k)
			})
		}
	}
}

// replay compares a run of random settings with its recursion.
func replay(t *testing.T, m replayedMethod, instance int) {
	r := &recursion{t: t, draws: rng.New(uint64(instance), "recursion "+m.algo+m.form), runs: map[int]string{},
		iterations: 8, seed: 1 + uint64(instance), decay: 0.05, mu: 0.9, eps: 0.01}
	r.n = pick(r, 3, 4, 5)
	partition := "dirichlet(1)"
	r.args = []string{"train", "--quiet", "--algo", m.algo, "--hidden", "none", "--data-train", "60", "--data-test",
		"20", "--eval-points", "1", "--metrics", "test", "--sampling", "full", "--threads", "1",
		"--partition", partition, "--agents", fmt.Sprint(r.n), "--seed", fmt.Sprint(r.seed),
		"--weight-decay", fmt.Sprint(r.decay)}
	r.settle(m)
	graph := "complete"
	if r.edges = "full"; !m.collective {
		graph = one(r, "graph", orElse(m.graphs, "ring", "complete", "star")...)
		if r.edges = pick(r, orElse(m.edges, "full", "matching", "one-edge")...); !m.rounds {
			r.args = append(r.args, "--edges", r.edges)
		}
	}
	r.open(graph, partition)
	if m.masks {
		r.masked("randk", "randk-per-layer", "bernoulli", "stratified", "block")
	}
	if m.fixed {
		r.lazy = map[string]float64{"metropolis": 1, "lazy-metropolis": 0.5, "half-lazy(lazy-metropolis)": 0.25}[one(r,
			"mixing", "metropolis", "lazy-metropolis", "half-lazy(lazy-metropolis)")]
	}
	m.run(r)
	r.compare()
}

// orElse returns values, or the others if there are none.
func orElse(values []string, others ...string) []string {
	if values == nil {
		return others
	}
	return values
}

// settle draws the settings of the optimizer, clipping and weights, and adds their flags to the
// command.
func (r *recursion) settle(m replayedMethod) {
	r.optimizer = pick(r, orElse(m.optimizers, "sgd")...)
	auto := len(m.optimizers) < 2 || r.optimizer == "sgd" && pick(r, false, true)
	if !auto || m.form == "adamw" {
		r.args = append(r.args, "--optimizer", r.optimizer)
	}
	r.alphaMax = 0.05
	switch r.optimizer {
	case "adamw", "gt-adam", "muon":
		r.alphaMax = 0.01
		r.args = append(r.args, "--eps", fmt.Sprint(r.eps))
	case "demo":
		r.alphaMax = 0.002
	}
	r.alpha = one(r, "alpha", r.alphaMax)
	if r.cosine = !m.constant && pick(r, false, true); r.cosine {
		r.args = append(r.args, "--schedule", "cosine", "--warmup-iterations", "2", "--decay-iterations", "8",
			"--min-alpha", fmt.Sprint(r.alphaMax/5))
	}
	if r.optimizer == "muon" {
		r.muonSettings()
	}
	adaptive := r.optimizer == "adamw" || r.optimizer == "muon"
	r.decoupled = adaptive || r.optimizer == "demo"
	r.corrected = m.tracks && r.optimizer != "sgd" || m.places && adaptive
	if m.places && r.optimizer != "sgd" && pick(r, false, true) {
		r.corrected = one(r, "placement", "local", "corrected") == "corrected"
	}
	if slices.Contains(m.optimizers, "adamw") && pick(r, false, false, true) {
		r.decoupled = one(r, "decay-form", "coupled", "decoupled") == "decoupled"
	}
	if pick(r, false, true) {
		one(r, "accumulate", 2)
	}
	if pick(r, false, true) {
		r.clip = one(r, "clip-norm", 0.7)
	}
	if pick(r, false, true) && (!adaptive || r.corrected || m.algo == "sgd") {
		r.samples = one(r, "objective", "samples") == "samples"
	}
}

// compare compares the models at the end of the run with those of the recursion.
func (r *recursion) compare() {
	r.t.Helper()
	moved, worst, off, tolerance := 0.0, 0.0, 0, 2e-5
	if r.optimizer == "adamw" || r.optimizer == "muon" { // they divide small numbers by small ones
		tolerance = 1e-4
	}
	for i, want := range r.x {
		for k, got := range r.after(r.iterations, i, "x") {
			e := math.Abs(got - want[k])
			if !(e <= tolerance) {
				off++
			}
			worst, moved = max(worst, e), max(moved, math.Abs(want[k]))
		}
	}
	if off > 0 {
		r.t.Errorf("%d coordinates differ, by up to %.3g of %.3g: %q", off, worst, moved, r.args)
	}
	if limit := r.decisions / 50; r.ties > limit {
		r.t.Errorf("%d of %d decisions are those of rounding: %q", r.ties, r.decisions, r.args)
	}
}
