package theory

import (
	"fmt"
	"io"
	"math"

	"fspda/dist"
)

// Consensus describes the effect of rounds of averaging on n agents.
type Consensus struct {
	Graph, Process string
	N              int
	Rounds         int     // rounds until the error is at most the tolerance; 0: not within the limit
	Error          float64 // Frobenius norm of the product of the mixing matrices less the matrix of exact averaging
	MaxDegree      int     // edges of an agent in a round, at most
	Vectors        float64 // vectors that an agent sends in these rounds, on average
}

// MeasureConsensus multiplies the mixing matrices of a process, round by round, in float64, until
// the product averages up to a tolerance, for at most limit rounds. The weights are the Metropolis
// weights of the active edges, or the weights of the process; on a directed process agents send
// equal shares.
func MeasureConsensus(graph, process string, n, limit int, tolerance float64) (Consensus, error) {
	c := Consensus{Graph: graph, Process: process, N: n}
	g, err := dist.ParseGraph(graph, n, 1)
	if err != nil {
		return c, err
	}
	p, err := dist.ParseProcess(process, g, 1)
	if err != nil {
		return c, err
	}
	x := make([][]float64, n)
	for i := range x {
		x[i] = make([]float64, n)
		x[i][i] = 1
	}
	sent := 0
	for t := range limit {
		parts := contributions(p, n, t)
		sent += len(parts)
		degree := make([]int, n)
		for _, f := range parts {
			degree[f.from]++
			c.MaxDegree = max(c.MaxDegree, degree[f.from])
		}
		x = mixed(x, parts)
		if c.Error = fromMean(x); c.Error <= tolerance {
			c.Rounds, c.Vectors = t+1, float64(sent)/float64(n)
			return c, nil
		}
	}
	return c, nil
}

// contribution is a directed contribution to a mixing matrix.
type contribution struct {
	from, to int
	weight   float64
}

func contributions(p dist.Process, n, t int) (parts []contribution) {
	if d := p.Directed(); d != nil {
		arcs, out := d.Arcs(nil, t), make([]int, n)
		for _, a := range arcs {
			out[a.From]++
		}
		for _, a := range arcs {
			parts = append(parts, contribution{a.From, a.To, 1 / float64(1+out[a.From])})
		}
		return parts
	}
	w := dist.NewActiveMixing(p, n)
	events := p.Active(nil, t)
	w.Set(events, t)
	for k, e := range events {
		parts = append(parts, contribution{e.From, e.To, w.Event(k)}, contribution{e.To, e.From, w.Event(k)})
	}
	return parts
}

// mixed returns W·x. The rows of W sum to 1: received values replace the agent's own.
func mixed(x [][]float64, parts []contribution) [][]float64 {
	next := make([][]float64, len(x))
	for i := range x {
		next[i] = append([]float64(nil), x[i]...)
	}
	for _, f := range parts {
		for k, v := range x[f.from] {
			next[f.to][k] += f.weight * (v - x[f.to][k])
		}
	}
	return next
}

// fromMean returns the Frobenius norm of x less the matrix of exact averaging.
func fromMean(x [][]float64) float64 {
	sum := 0.0
	for _, row := range x {
		for _, v := range row {
			d := v - 1/float64(len(x))
			sum += d * d
		}
	}
	return math.Sqrt(sum)
}

// publishedRounds are the rounds of Base-(k+1) graphs, for k = 1, 2, 3, 4, in the program that
// Takezawa, Sato, Bao, Niwa and Yamada published with "Beyond Exponential Graph" (NeurIPS 2023).
var publishedRounds = []struct {
	n      int
	rounds [4]int
}{
	{5, [4]int{5, 3, 3, 1}}, {6, [4]int{4, 2, 2, 2}}, {7, [4]int{5, 4, 3, 3}}, {10, [4]int{6, 4, 4, 2}},
	{16, [4]int{4, 4, 2, 2}}, {23, [4]int{9, 6, 5, 4}}, {25, [4]int{9, 6, 5, 2}}, {33, [4]int{11, 6, 5, 5}},
	{60, [4]int{9, 6, 5, 3}},
}

// exactly is the largest error of a product that counts as exact averaging.
const exactly = 1e-13

// WriteBaseGraphs writes the replay of Base-(k+1) graphs: rounds until averaging is exact,
// published and measured, and for 25 agents the rounds of other graphs until the error is at most
// 1e-6.
func WriteBaseGraphs(w io.Writer) error {
	text := "Rounds until all agents have the exact mean (error of the product of the mixing matrices at most " +
		"1e-13):\n\n| agents | k | published | ours | difference | error |\n|---|---|---|---|---|---|\n"
	for _, row := range publishedRounds {
		for k, want := range row.rounds {
			spec := fmt.Sprintf("base(%d)", k+1)
			c, err := MeasureConsensus(spec, spec, row.n, 4*want, exactly)
			if err != nil {
				return err
			}
			text += fmt.Sprintf("| %d | %d | %d | %d | %+d | %.1e |\n", row.n, k+1, want, c.Rounds, c.Rounds-want,
				c.Error)
		}
	}
	text += "\nRounds of 25 agents until the error is at most 1e-6, and vectors that an agent sends in them:\n\n" +
		"| graph | edges of an agent in a round | rounds | vectors sent |\n|---|---|---|---|\n"
	for _, g := range [][2]string{{"base(1)", "base(1)"}, {"base(2)", "base(2)"}, {"base(3)", "base(3)"},
		{"base(4)", "base(4)"}, {"exponential", "one-peer-exp"}, {"exponential", "static-exp"}, {"complete", "full"},
		{"torus", "full"}, {"ring", "full"}, {"complete", "matching"}} {
		c, err := MeasureConsensus(g[0], g[1], 25, 5000, 1e-6)
		if err != nil {
			return err
		}
		name := g[0]
		if g[1] != g[0] {
			name += ", edges " + g[1]
		}
		text += fmt.Sprintf("| %s | %d | %d | %.1f |\n", name, c.MaxDegree, c.Rounds, c.Vectors)
	}
	_, err := io.WriteString(w, text)
	return err
}
