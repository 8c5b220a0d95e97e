package data

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"

	"fspda/internal/rng"
)

// Contiguous splits the training examples in their order into equal slices of floor(N/n) examples,
// or a text into slices of floor(N/n) tokens. The remainder is dropped; with Spread, the first N
// mod n agents get one more instead. The seed is not used.
type Contiguous struct{ Spread bool }

func (p Contiguous) String() string { return withSpread("contiguous", p.Spread) }

func (p Contiguous) Split(labels []int32, classes, agents int, _ uint64) ([][]int32, error) {
	if err := checkSplit(labels, classes, agents); err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	return equalSlices(sequence(len(labels)), agents, p.Spread), nil
}

// documentPartition is a Partition that deals the documents of a text, so that shards are equal in
// tokens as far as documents and classes allow. Every document is used.
type documentPartition interface {
	Partition
	deal(d documents, agents int, seed uint64) ([][]int32, error)
}

var (
	_ documentPartition = Shuffled{}
	_ documentPartition = Sorted{}
	_ documentPartition = ByClass{}
	_ documentPartition = Dirichlet{}
	_ documentPartition = DirichletEqual{}
	_ documentPartition = File{}
)

// check refuses too few documents, and a partition with a rule for a remainder.
func (d documents) check(agents int, spread bool) error {
	if spread {
		return fmt.Errorf("spread has no effect on a text, all of whose documents are used: leave it out")
	}
	if len(d.labels) < agents {
		return fmt.Errorf("%d documents for %d agents, want at least one each: use fewer agents, the partition "+
			"contiguous, or a text with more files, or speeches under the names of their "+
			"speakers", len(d.labels), agents)
	}
	return nil
}

// slices cuts an order of the documents into slices of about equally many tokens: a document
// belongs to the agent in whose share its middle lies.
func (d documents) slices(order []int32, agents int) [][]int32 {
	total := int64(0)
	for _, n := range d.tokens {
		total += n
	}
	shards, at := make([][]int32, agents), int64(0)
	for _, k := range order {
		middle := float64(at) + float64(d.tokens[k])/2
		i := min(int(middle/float64(total)*float64(agents)), agents-1)
		shards[i] = append(shards[i], k)
		at += d.tokens[k]
	}
	return shards
}

func (p Shuffled) deal(d documents, agents int, seed uint64) ([][]int32, error) {
	if err := d.check(agents, p.Spread); err != nil {
		return nil, err
	}
	order := sequence(len(d.labels))
	s := rng.New(seed, "partition")
	s.Permute(order)
	return d.slices(order, agents), nil
}

func (p Sorted) deal(d documents, agents int, _ uint64) ([][]int32, error) {
	if err := d.check(agents, p.Spread); err != nil {
		return nil, err
	}
	return d.slices(slices.Concat(members(d.labels, d.classes)...), agents), nil
}

func (ByClass) deal(d documents, agents int, _ uint64) ([][]int32, error) {
	if agents != d.classes {
		return nil, fmt.Errorf("%d agents and %d classes of documents (speakers, folders or files), want as many "+
			"agents as classes: use %d agents, or the partition sorted", agents, d.classes, d.classes)
	}
	return members(d.labels, d.classes), nil
}

func (p File) deal(d documents, agents int, seed uint64) ([][]int32, error) {
	return p.Split(d.labels, d.classes, agents, seed)
}

// deal draws the proportions of each class as Split does, of its tokens, and resamples until every
// agent has MinSize documents.
func (p Dirichlet) deal(d documents, agents int, seed uint64) ([][]int32, error) {
	least := cmp.Or(p.MinSize, defaultMinSize)
	err := d.check(agents, false)
	if err == nil {
		err = checkAlpha(p.Alpha)
	}
	if err == nil && least > len(d.labels)/agents {
		err = fmt.Errorf("%d agents with at least %d documents each, but there are %d: use fewer agents or a smaller "+
			"least shard", agents, least, len(d.labels))
	}
	if err != nil {
		return nil, err
	}
	s := rng.New(seed, "partition")
	of := shuffledMembers(&s, d.labels, d.classes)
	best := 0
	for try := range max(dirichletMinTries, min(dirichletMaxTries, dirichletWork/(d.classes*agents))) {
		shards := d.cut(s.Sub(uint64(try)), of, agents, p.Alpha)
		smallest := len(slices.MinFunc(shards, func(a, b []int32) int { return cmp.Compare(len(a), len(b)) }))
		if smallest >= least {
			return shards, nil
		}
		best = max(best, smallest)
	}
	return nil, fmt.Errorf("the smallest shard never had more than %d documents, want %d: use a larger concentration, "+
		"fewer agents or a smaller minimum size", best, least)
}

// cut cuts every class by proportions of its tokens.
func (d documents) cut(s rng.Stream, of [][]int32, agents int, alpha float64) [][]int32 {
	shards, share, upTo := make([][]int32, agents), make([]float64, agents), make([]float64, agents)
	for _, class := range of {
		total, sum := int64(0), 0.0
		for _, k := range class {
			total += d.tokens[k]
		}
		s.Dirichlet(share, alpha)
		for i, q := range share {
			sum += q
			upTo[i] = sum * float64(total)
		}
		upTo[agents-1] = math.Inf(1) // the rounded sum may differ from 1
		at := int64(0)
		for _, k := range class {
			middle := float64(at) + float64(d.tokens[k])/2
			i := sort.SearchFloat64s(upTo, middle)
			shards[i] = append(shards[i], k)
			at += d.tokens[k]
		}
	}
	return shards
}

// deal lets the agent with the fewest tokens take the next document, of a class that it draws from
// its mix.
func (p DirichletEqual) deal(d documents, agents int, seed uint64) ([][]int32, error) {
	err := d.check(agents, false)
	if err == nil {
		err = checkAlpha(p.Alpha)
	}
	if err != nil {
		return nil, err
	}
	s := rng.New(seed, "partition")
	left := shuffledMembers(&s, d.labels, d.classes)
	mix := make([][]float64, agents)
	for i := range mix {
		mix[i] = make([]float64, d.classes)
		s.Dirichlet(mix[i], p.Alpha)
	}
	shards, has := make([][]int32, agents), make([]int64, agents)
	for range d.labels {
		i := 0
		for k, n := range has {
			if n < has[i] {
				i = k
			}
		}
		c := drawClass(&s, mix[i], left)
		last := len(left[c]) - 1
		k := left[c][last]
		left[c] = left[c][:last]
		shards[i], has[i] = append(shards[i], k), has[i]+d.tokens[k]
	}
	return shards, nil
}
