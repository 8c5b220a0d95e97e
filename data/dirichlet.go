package data

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"fspda/internal/rng"
)

const (
	defaultMinSize    = 10    // examples that a shard of Dirichlet has at least
	dirichletMaxTries = 10000 // samples before Dirichlet gives up,
	dirichletMinTries = 100   // or fewer with many classes and agents:
	dirichletWork     = 1e7   // proportions sampled in total, about a second

	// Below minAlpha the components underflow; above maxAlpha all are equal to float precision.
	minAlpha = 1e-4
	maxAlpha = 1e9
)

// Dirichlet splits every class by proportions p ~ Dir(Alpha·1) over the agents, at
// floor(cumsum(p)·count) in a random order of the class. All proportions are resampled until every
// agent has at least MinSize examples (0 means 10). Every example is used once. A small Alpha makes
// heterogeneous shards, in class mix and in size. This is the split of Hsu, Qi and Brown (2019) by
// classes, as used by Li et al. (NIID-Bench, 2021).
type Dirichlet struct {
	Alpha   float64
	MinSize int
}

// DirichletEqual gives every agent a class mix q ~ Dir(Alpha·1) and floor(N/n) examples. The agents
// take turns: each samples a class from its mix and takes an unused example of that class. An
// exhausted class leaves all mixes, which are renormalized; an agent whose mix becomes empty
// samples from all remaining examples. N mod n examples stay unused.
type DirichletEqual struct{ Alpha float64 }

var (
	_ Partition = Dirichlet{}
	_ Partition = DirichletEqual{}
)

func (p Dirichlet) String() string {
	if p.MinSize != 0 && p.MinSize != defaultMinSize {
		return fmt.Sprintf("dirichlet(%v,%d)", p.Alpha, p.MinSize)
	}
	return fmt.Sprintf("dirichlet(%v)", p.Alpha)
}

func (p DirichletEqual) String() string { return fmt.Sprintf("dirichlet-equal(%v)", p.Alpha) }

func checkAlpha(alpha float64) error {
	if !(alpha >= minAlpha && alpha <= maxAlpha) {
		return fmt.Errorf("concentration %v, want a number from %g to %g", alpha, minAlpha, maxAlpha)
	}
	return nil
}

func (p Dirichlet) Split(labels []int32, classes, agents int, seed uint64) ([][]int32, error) {
	least := cmp.Or(p.MinSize, defaultMinSize)
	err := checkSplit(labels, classes, agents)
	if err == nil {
		err = checkAlpha(p.Alpha)
	}
	if err == nil && (least < 1 || least > len(labels)/agents) {
		err = fmt.Errorf("%d agents with at least %d examples each, but there are %d examples: use fewer agents "+
			"or a smaller least shard", agents, least, len(labels))
	}
	if err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	s := rng.New(seed, "partition")
	of := shuffledMembers(&s, labels, classes)
	cuts, best := make([][]int, classes), 0
	tries := min(dirichletMaxTries, max(dirichletMinTries, dirichletWork/(classes*agents)))
	for try := range tries {
		smallest := p.draw(s.Sub(uint64(try)), cuts, of, agents)
		if smallest >= least {
			return assemble(cuts, of, agents), nil
		}
		best = max(best, smallest)
	}
	return nil, fmt.Errorf("data: in %d draws for %d agents the smallest shard never had more than %d examples, want "+
		"%d: use a larger concentration, fewer agents or a smaller minimum size", tries, agents, best, least)
}

// draw computes the cuts of all classes and returns the size of the smallest shard. cuts[c][i] is
// the end of the part of agent i.
func (p Dirichlet) draw(s rng.Stream, cuts [][]int, of [][]int32, agents int) int {
	share, size := make([]float64, agents), make([]int, agents)
	for c, class := range of {
		if cuts[c] == nil {
			cuts[c] = make([]int, agents)
		}
		s.Dirichlet(share, p.Alpha)
		sum, from := 0.0, 0
		for i, q := range share {
			sum += q
			end := min(int(math.Floor(sum*float64(len(class)))), len(class))
			if i == agents-1 {
				end = len(class) // the rounded sum may differ from 1
			}
			cuts[c][i] = end
			size[i] += end - from
			from = end
		}
	}
	return slices.Min(size)
}

func assemble(cuts [][]int, of [][]int32, agents int) [][]int32 {
	shards := make([][]int32, agents)
	for c, class := range of {
		from := 0
		for i, end := range cuts[c] {
			shards[i] = append(shards[i], class[from:end]...)
			from = end
		}
	}
	return shards
}

func (p DirichletEqual) Split(labels []int32, classes, agents int, seed uint64) ([][]int32, error) {
	err := checkSplit(labels, classes, agents)
	if err == nil {
		err = checkAlpha(p.Alpha)
	}
	if err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	s := rng.New(seed, "partition")
	left := shuffledMembers(&s, labels, classes)
	mix := make([][]float64, agents)
	for i := range mix {
		mix[i] = make([]float64, classes)
		s.Dirichlet(mix[i], p.Alpha)
	}
	shards := make([][]int32, agents)
	for range len(labels) / agents {
		for i := range shards {
			c := drawClass(&s, mix[i], left)
			last := len(left[c]) - 1
			shards[i] = append(shards[i], left[c][last])
			left[c] = left[c][:last]
		}
	}
	return shards, nil
}

// shuffledMembers lists the examples of each class in random order.
func shuffledMembers(s *rng.Stream, labels []int32, classes int) [][]int32 {
	of := members(labels, classes)
	for _, class := range of {
		s.Permute(class)
	}
	return of
}

// drawClass samples a class that has examples left, by mix restricted to such classes, or by the
// remaining counts if that is empty.
func drawClass(s *rng.Stream, mix []float64, left [][]int32) int {
	total := 0.0
	for c, q := range mix {
		if len(left[c]) > 0 {
			total += q
		}
	}
	weight := func(c int) float64 { return mix[c] }
	if total <= 0 {
		for _, class := range left {
			total += float64(len(class))
		}
		weight = func(c int) float64 { return float64(len(left[c])) }
	}
	u, last := s.Float64()*total, 0
	for c := range left {
		if len(left[c]) == 0 || weight(c) == 0 {
			continue
		}
		last = c
		if u -= weight(c); u < 0 {
			break
		}
	}
	return last // the last candidate, if rounding left u at 0 or above
}
