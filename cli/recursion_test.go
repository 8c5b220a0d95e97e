package cli

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"fspda/data"
	"fspda/dist"
	"fspda/internal/rng"
	"fspda/model"
	"fspda/train/safetensors"
)

// recursion is a run as its method states it, in float64 and without any code of the program but
// that which draws data, graphs, edges, masks and the first model. Its settings are those that the
// flags mean, defaults included.
type recursion struct {
	n, d, iterations int
	seed             uint64
	optimizer        string // resolved: sgd, heavy-ball, nesterov, adamw or gt-adam
	mu, eps          float64
	decay            float64
	decoupled        bool
	clip             float64
	corrected        bool // where the correction stands
	alpha, eta       float64
	gamma, steps     float64
	samples          bool
	scale            []float64 // of an agent's gradient in the objective

	graph   *dist.Graph
	process dist.Process
	mask    dist.Mask

	features [][][]float64 // by agent, example
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

// open draws the data and the first model of the run that the flags describe.
func (r *recursion) open(t *testing.T, graph, edges, mask, partition string, density float64) {
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
	if r.process, err = dist.ParseProcess(edges, r.graph, r.seed); err != nil {
		t.Fatal(err)
	}
	if r.mask, err = dist.ParseMask(mask, density, []int{r.d - r.classes, r.classes}, r.seed); err != nil {
		t.Fatal(err)
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

// descend returns the step of agent i at x with correction c of the direction: alpha·(Opt(g) + c) or
// alpha·Opt(g + c).
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

// differences returns Σ w·(own - other) for each agent over the edges that are active at t.
// Metropolis weights are computed on the active graph. Other weights are 1.
func (r *recursion) differences(t int, v [][]float64, metropolis bool) [][]float64 {
	events := r.process.Active(nil, t)
	degree, out := make([]int, r.n), zeroes(r.n, r.d)
	for _, e := range events {
		degree[e.From]++
		degree[e.To]++
	}
	for _, e := range events {
		w := 1.0
		if metropolis {
			w = 1 / float64(1+max(degree[e.From], degree[e.To]))
		}
		for _, k := range r.mask.Draw(nil, t, e.From, e.To) {
			diff := w * (v[e.From][k] - v[e.To][k])
			out[e.From][k] += diff
			out[e.To][k] -= diff
		}
	}
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
		for k := range instances {
			t.Run(fmt.Sprintf("%s %s %d", m.algo, m.form, k), func(t *testing.T) {
				t.Parallel()
				replay(t, m, k)
			})
		}
	}
}

// replay compares a run of random settings with its recursion.
func replay(t *testing.T, m replayedMethod, instance int) {
	s := rng.New(uint64(instance), "recursion "+m.algo+m.form)
	pick := func(of ...string) string { return of[s.IntN(len(of))] }
	r := &recursion{n: 3 + s.IntN(3), iterations: 8, seed: 1 + uint64(instance), alpha: 0.05, eta: 0.02, gamma: 0.3,
		decay: 0.05, mu: 0.9, eps: 0.01, steps: 2}
	if m.signs { // a choice that rounding decides changes all further ones
		r.alpha, r.iterations = 0.002, 4
	}
	optimizers := m.optimizers
	if optimizers == nil {
		optimizers = []string{"sgd"}
	}
	r.optimizer = pick(optimizers...)
	graph, edges := pick("ring", "complete", "star"), pick("full", "matching", "one-edge")
	density, mask := 1.0, "all"
	if m.masks {
		density, mask = 0.3, "randk"
	}
	partition := "dirichlet(1)"
	args := []string{"train", "--quiet", "--algo", m.algo, "--hidden", "none", "--data-train", "60", "--data-test",
		"20", "--iterations", fmt.Sprint(r.iterations), "--eval-points", "1", "--metrics", "test", "--sampling",
		"full", "--threads", "1",
		"--partition", partition, "--agents", fmt.Sprint(r.n), "--seed", fmt.Sprint(r.seed), "--weight-decay", "0.05"}
	if m.edges != "" {
		edges = m.edges
	}
	if m.graph != "" {
		graph = m.graph
	}
	if !m.collective {
		args = append(args, "--graph", graph)
		if !m.rounds {
			args = append(args, "--edges", edges)
		}
	}
	if m.masks {
		args = append(args, "--mask", mask, "--density", "0.3")
	}
	r.settle(&s, m, &args)
	r.open(t, graph, edges, mask, partition, density)
	args = append(args, "--alpha", fmt.Sprint(r.alpha))
	args = append(args, m.args...)
	dir := filepath.Join(t.TempDir(), "run")
	if status, _, stderr := call(t, append(args, "--out", dir)...); status != 0 {
		t.Fatalf("%q: status %d\n%s", args, status, stderr)
	}
	m.run(r)
	compareModels(t, dir, r, m.signs, args)
}

// settle draws the settings of the optimizer, clipping and weights, adds their flags to the command,
// and sets up the recursion in the same way.
func (r *recursion) settle(s *rng.Stream, m replayedMethod, args *[]string) {
	auto := m.optimizers == nil || len(m.optimizers) == 1 || r.optimizer == "sgd"
	if !auto || r.optimizer == "sgd" && s.IntN(2) == 0 && m.optimizers != nil {
		*args = append(*args, "--optimizer", r.optimizer)
	}
	if r.optimizer == "adamw" || r.optimizer == "gt-adam" {
		r.alpha = 0.01
		*args = append(*args, "--eps", "0.01")
	}
	r.decoupled = r.optimizer == "adamw" || m.algo == "demo"
	r.corrected = m.tracks && r.optimizer != "sgd" || m.places && r.optimizer == "adamw"
	if m.places && r.optimizer != "sgd" && s.IntN(2) == 0 {
		r.corrected = !r.corrected
		*args = append(*args, "--placement", map[bool]string{true: "corrected", false: "local"}[r.corrected])
	}
	if slices.Contains(m.optimizers, "adamw") && s.IntN(3) == 0 {
		r.decoupled = !r.decoupled
		*args = append(*args, "--decay-form", map[bool]string{true: "decoupled", false: "coupled"}[r.decoupled])
	}
	if s.IntN(2) == 0 {
		r.clip = 0.7
		*args = append(*args, "--clip-norm", "0.7")
	}
	if s.IntN(2) == 0 && (r.optimizer != "adamw" || r.corrected || m.algo == "sgd") {
		r.samples = true
		*args = append(*args, "--objective", "samples")
	}
}

// compareModels compares the models of the last checkpoint with those of the recursion. Where steps
// are signs, rounding decides between coefficients of equal size, and then all signs of a chunk may
// differ.
func compareModels(t *testing.T, dir string, r *recursion, signs bool, args []string) {
	t.Helper()
	all := checkpoints(t, dir)
	f, err := safetensors.Open(filepath.Join(all[len(all)-1], "agents.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	moved, worst, off, tolerance := 0.0, 0.0, 0, 2e-5
	if r.optimizer == "adamw" { // it divides small numbers by small ones
		tolerance = 1e-4
	}
	for i, want := range r.x {
		got, err := safetensors.Load[float32](f, fmt.Sprintf("agent%d/x", i))
		if err != nil || len(got) != r.d {
			t.Fatalf("agent %d: %d numbers, %v", i, len(got), err)
		}
		for k, v := range want {
			e := math.Abs(float64(got[k]) - v)
			if e > tolerance {
				off++
			}
			worst, moved = max(worst, e), max(moved, math.Abs(v))
		}
	}
	if limit := r.n * r.d / 10; signs && off > limit || !signs && off > 0 {
		t.Errorf("%d coordinates differ, by up to %.3g of %.3g: %q", off, worst, moved, args)
	}
}
