package theory

import (
	"context"
	"fmt"
	"math"
	"slices"

	"fspda/dist"
	"fspda/train/algo"
)

// Study varies one quantity and fits slopes.
type Study struct {
	Name, Title string
	About       string // the paper's prediction, with its place
	X, Y        string // names of the axes
	Series      []Series
}

// Series is one curve of a study.
type Series struct {
	Name      string
	Predicted float64 // the slope
	Why       string  // source of the prediction
	Points    []Point
}

// Point is one abscissa of a series and how to measure its ordinate with a seed.
type Point struct {
	X       float64
	Measure func(ctx context.Context, seed uint64) (float64, error)
}

const (
	agents = 8
	coords = 16
	noise  = 1.0
	hetero = 1.0
)

// Studies lists the studies.
func Studies() []Study {
	return []Study{iterations(), speedup(), transient(), storm(), density(), probability(), heterogeneity()}
}

// Find returns the study of a name.
func Find(name string) (Study, bool) {
	all := Studies()
	i := slices.IndexFunc(all, func(s Study) bool { return s.Name == name })
	if i < 0 {
		return Study{}, false
	}
	return all[i], true
}

// base is a run of FSPDA-SA of T iterations with the step size of the paper's rate, alpha =
// √(n/(T·sigma²)), gamma 0.5, beta 1, and eta by the rule of the trainer.
func base(n, iterations int, graph, edges string, density float64) Settings {
	c := Settings{Problem: Problem{N: n, D: coords, Noise: noise, Hetero: hetero, Seed: 1}, Graph: graph, Edges: edges,
		Density: density, Iterations: iterations, Alpha: rateStep(n, iterations)}
	c.Algorithm, c.Gamma = algo.SA{Gamma: gamma, Beta: 1}, gamma
	return c
}

const gamma = 0.5

// rateStep is the step size of the paper's rate, after the theorem on FSPDA-SA.
func rateStep(n, iterations int) float64 {
	return math.Sqrt(float64(n) / (float64(iterations) * noise * noise))
}

// gap returns rho_min: the smallest non-zero eigenvalue of the expected Laplacian, with the masks.
func (c *Settings) gap() float64 {
	g, err := dist.ParseGraph(c.Graph, c.N, c.Seed)
	if err != nil {
		return math.NaN() // Run reports it
	}
	p, err := dist.ParseProcess(c.Edges, g, c.Seed)
	if err != nil {
		return math.NaN()
	}
	return g.Connectivity() * p.Rate(0) * c.Density
}

// point measures one of the errors of runs.
func point(x float64, c Settings, of func(Result) float64) Point {
	return Point{X: x, Measure: func(ctx context.Context, seed uint64) (float64, error) {
		own := c // seeds may be measured at the same time
		own.RunSeed = seed
		r, err := own.Run(ctx)
		return of(r), err
	}}
}

func gradSq(r Result) float64    { return r.GradSq }
func consensus(r Result) float64 { return r.Consensus }

func iterations() Study {
	var points []Point
	for t := 1 << 10; t <= 1<<15; t *= 2 {
		points = append(points, point(float64(t), base(agents, t, "complete", "matching", 1), gradSq))
	}
	return Study{Name: "iterations", Title: "FSPDA-SA: error against the number of iterations", X: "T",
		Y:     "mean of |grad F(mean model)|²", // the font of PNG files has no nabla
		About: "The rate after the theorem on FSPDA-SA: O(sigma/√(nT)) with alpha = √(n/(T sigma²)).",
		Series: []Series{{Name: "FSPDA-SA, 8 agents", Predicted: -0.5, Why: "T^(-1/2) of the rate",
			Points: points}}}
}

func speedup() Study {
	var points []Point
	for n := 2; n <= 32; n *= 2 {
		points = append(points, point(float64(n), base(n, 1<<13, "complete", "matching", 1), gradSq))
	}
	return Study{Name: "speed-up", Title: "FSPDA-SA: error against the number of agents", X: "n",
		Y: "mean of |grad F(mean model)|²",
		About: "The rate after the theorem on FSPDA-SA: O(sigma/√(nT)), so that n agents need 1/n of the " +
			"iterations: linear speed-up.",
		Series: []Series{{Name: "FSPDA-SA, T = 8,192", Predicted: -0.5, Why: "n^(-1/2) of the rate",
			Points: points}}}
}

// transient measures, for each graph, the T from which on the error of FSPDA-SA is at most twice
// the error of SGD on the mean gradient.
func transient() Study {
	var points []Point
	for _, graph := range []string{"ring", "grid", "hypercube", "exponential"} {
		c := base(2*agents, 1, graph, "one-edge", 1)
		c.Hetero = 4 * hetero
		points = append(points, Point{X: c.gap(), Measure: func(ctx context.Context, seed uint64) (float64, error) {
			return transientTime(ctx, c, seed)
		}})
	}
	return Study{Name: "transient", Title: "FSPDA-SA: transient time against the graph's gap", X: "rho_min",
		Y: "transient time T",
		About: "From T on the error is at most twice that of central SGD. The paper's appendix: the transient time " +
			"is Ω(sigma_A⁴/rho_min⁴ · …), an upper bound on what is needed. One edge an iteration, 16 agents, " +
			"zeta 4; ring, grid, hypercube, exponential graph.",
		Series: []Series{{Name: "FSPDA-SA, 16 agents", Predicted: -4, Why: "rho_min^(-4) of the bound",
			Points: points}}}
}

// transientTime interpolates, on logarithmic axes, the last crossing of twice the error of central
// SGD: from there on the error is below it up to 2^15 iterations. It is +Inf if the error is above
// it there.
func transientTime(ctx context.Context, c Settings, seed uint64) (float64, error) {
	c.RunSeed = seed
	after := math.NaN()
	for t := 1 << 15; t >= 1<<5; t /= 2 {
		c.Iterations, c.Alpha, c.Central = t, min(0.5, rateStep(c.N, t)), false
		own, err := c.Run(ctx)
		if err != nil {
			return 0, err
		}
		c.Central = true
		central, err := c.Run(ctx)
		if err != nil {
			return 0, err
		}
		ratio := math.Log2(own.GradSq / central.GradSq)
		switch {
		case ratio > 1 && math.IsNaN(after):
			return math.Inf(1), nil
		case ratio > 1:
			return float64(t) * math.Exp2((ratio-1)/(ratio-after)), nil
		}
		after = ratio
	}
	return 1 << 5, nil
}

func storm() Study {
	var storm, sa []Point
	for t := 1 << 10; t <= 1<<15; t *= 2 {
		sa = append(sa, point(float64(t), base(agents, t, "complete", "matching", 1), gradSq))
		third := math.Pow(float64(t), -1.0/3)
		c := base(agents, t, "complete", "matching", 1)
		c.Alpha, c.Eta, c.FirstBatch = third, agents, 1/third
		c.Algorithm = algo.STORM{Gamma: min(0.5, 2*third), Beta: third * third / agents, AX: third * third,
			ALambda: third}
		storm = append(storm, point(float64(t), c, gradSq))
	}
	return Study{Name: "storm", Title: "FSPDA-STORM: error against the number of iterations", X: "T",
		Y: "mean of |grad F(mean model)|²",
		About: "The rate after the theorem on FSPDA-STORM: O(sigma^(2/3)/T^(2/3)) with alpha = T^(-1/3), gamma = " +
			"2T^(-1/3), eta = n, beta = " +
			"T^(-2/3)/n, a_x = T^(-2/3), a_lambda = T^(-1/3), and T^(1/3) times the batch at the start.",
		Series: []Series{
			{Name: "FSPDA-STORM", Predicted: -2.0 / 3, Why: "T^(-2/3) of the rate", Points: storm},
			{Name: "FSPDA-SA", Predicted: -0.5, Why: "T^(-1/2) of its rate", Points: sa}}}
}

// spread measures the errors of runs after the transient, in their second half.
func spread(xs []float64, run func(x float64) Settings) (stationarity, agreement []Point) {
	for _, x := range xs {
		c := run(x)
		c.From = 0.5
		stationarity = append(stationarity, point(x, c, gradSq))
		agreement = append(agreement, point(x, c, consensus))
	}
	return stationarity, agreement
}

const long = 1 << 14 // iterations of runs whose second half is measured

func density() Study {
	stationarity, agreement := spread([]float64{1.0 / 16, 1.0 / 8, 1.0 / 4, 1.0 / 2, 1}, func(x float64) Settings {
		return base(agents, long, "complete", "matching", x)
	})
	return sparsity("density", "FSPDA-SA: effect of the density of masks", "density", stationarity, agreement)
}

func probability() Study {
	stationarity, agreement := spread([]float64{1.0 / 16, 1.0 / 8, 1.0 / 4, 1.0 / 2, 1}, func(x float64) Settings {
		c := base(agents, long, "ring", fmt.Sprintf("bernoulli(%g)", x), 1)
		c.Algorithm, c.Gamma = algo.SA{Gamma: gamma / 2, Beta: 1}, gamma/2 // two edges may be active at an agent
		return c
	})
	return sparsity("probability", "FSPDA-SA: effect of the probability of edges", "probability of an edge",
		stationarity, agreement)
}

// sparsity makes a study of a parameter that scales rho_min.
func sparsity(name, title, x string, stationarity, agreement []Point) Study {
	return Study{Name: name, Title: title, X: x, Y: "error",
		About: "The theorem on FSPDA-SA: after the transient the random graph does not change the rate of the " +
			"gradient. The bound of the consensus error is proportional to 1/(gamma rho_min), with gamma held. " +
			"Means over the second half of 16,384 iterations.",
		Series: []Series{
			{Name: "|grad F(mean model)|²", Predicted: 0, Why: "absent from the rate", Points: stationarity},
			{Name: "consensus error", Predicted: -1, Why: "1/(gamma rho_min) of the bound", Points: agreement}}}
}

func heterogeneity() Study {
	xs := []float64{8, 16, 32, 64, 128}
	sa, _ := spread(xs, func(x float64) Settings {
		c := base(agents, long, "complete", "matching", 1)
		c.Hetero = x
		return c
	})
	var whole []Point
	for _, x := range xs {
		c := base(agents, long, "complete", "matching", 1)
		c.Hetero = x
		whole = append(whole, point(x, c, gradSq))
	}
	dsgd, _ := spread(xs, func(x float64) Settings {
		c := base(agents, long, "complete", "matching", 1)
		c.Hetero, c.Algorithm = x, algo.DSGD{Theta: gamma}
		return c
	})
	return Study{Name: "heterogeneity", Title: "Error against the heterogeneity of the agents",
		X: "zeta, norm of an agent's gradient at the minimum", Y: "mean of |grad F(mean model)|²",
		About: "The theorem on FSPDA-SA has no bound on heterogeneity in its rate; that of DSGD has alpha² " +
			"zeta²/rho². Means over the second half of 16,384 iterations.",
		Series: []Series{
			{Name: "FSPDA-SA", Predicted: 0, Why: "absent from the rate", Points: sa},
			{Name: "FSPDA-SA, from the first iteration", Predicted: 0, Why: "absent from the rate, but not from the " +
				"constant F_0 of the initial duals", Points: whole},
			{Name: "DSGD", Predicted: 2, Why: "zeta² of DSGD's rate, where it dominates", Points: dsgd}}}
}
