package data

import (
	"fmt"
	"strconv"
	"strings"

	spell "fspda/internal/spelling"
)

// Partition distributes the examples of a set among agents. It holds settings only.
type Partition interface {
	// Split returns the shard of each agent, the indices of its examples. Shards are disjoint. The
	// result is a pure function of the arguments and the settings. An error names the invalid
	// number and the remedy.
	Split(labels []int32, classes, agents int, seed uint64) ([][]int32, error)
	// String is the spec that ParsePartition parses to the same Partition.
	String() string
}

// partitionSpec is a row of the table of accepted specs.
type partitionSpec struct {
	name  string
	usage string
	what  string
	parse func(args []string) (Partition, error)
}

var spellings = []partitionSpec{
	{"contiguous", "contiguous, contiguous(spread)", "equal slices in the set's order, of a text in tokens; the " +
		"remainder is dropped, or spread", spreads(func(s bool) Partition { return Contiguous{s} })},
	{"shuffled", "shuffled, shuffled(spread)", "equal slices of a random order; the remainder is dropped, or spread",
		spreads(func(s bool) Partition { return Shuffled{s} })},
	{"sorted", "sorted, sorted(spread)", "equal slices of the order by label; the remainder is dropped, or spread",
		spreads(func(s bool) Partition { return Sorted{s} })},
	{"by-class", "by-class", "agent i has the examples of class i; needs as many agents as classes",
		plainly(ByClass{})},
	{"by-writer", "by-writer", "agents have whole writers, of data writers, in the order of their names; needs at " +
		"least as many writers as agents", plainly(ByWriter{})},
	{"dirichlet", "dirichlet(0.3), dirichlet(0.3,20)",
		"each class is cut by a draw from Dir(0.3); shards of at least 10, or 20", parseDirichlet},
	{"dirichlet-equal", "dirichlet-equal(0.3)", "each agent has a class mix from Dir(0.3); shards of equal size",
		parseDirichletEqual},
	{"file", "file(path)", "index lists from a file, one agent a line, or JSON", parseFile},
}

// ParsePartition parses the spec of a partition as used in configurations. The error for an unknown
// spec lists all accepted ones.
func ParsePartition(spec string) (Partition, error) {
	name, arg, hasArg, err := spell.Split(spec)
	if err != nil {
		return nil, fmt.Errorf("data: partition: %w", err)
	}
	var args []string
	if hasArg {
		args = []string{arg}
		if name != "file" { // a path may contain commas
			args = strings.Split(arg, ",")
		}
	}
	for i := range args {
		args[i] = strings.TrimSpace(args[i])
	}
	var names []string
	for _, s := range spellings {
		names = append(names, s.name)
		if s.name == name {
			p, err := s.parse(args)
			if err != nil {
				return nil, fmt.Errorf("data: %q: %w; accepted: %s", spec, err, s.usage)
			}
			return p, nil
		}
	}
	near := spell.Nearest(name, names)
	if near != "" {
		near = "; did you mean " + near + "?"
	}
	return nil, fmt.Errorf("data: %q is not known%s; accepted:\n%s", spec, near, PartitionUsage())
}

// PartitionForms lists the accepted partition specs, with examples of their arguments.
func PartitionForms() (forms []string) {
	for _, s := range spellings {
		for form := range strings.SplitSeq(s.usage, ", ") {
			forms = append(forms, form)
		}
	}
	return forms
}

// PartitionUsage returns the table of accepted partition specs, one per line, for help texts.
func PartitionUsage() string {
	var b strings.Builder
	for _, s := range spellings {
		fmt.Fprintf(&b, "  %-34s %s\n", s.usage, s.what)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// spreads returns the parser of a partition with the argument spread, or none.
func spreads(with func(spread bool) Partition) func(args []string) (Partition, error) {
	return func(args []string) (Partition, error) {
		if len(args) > 1 || len(args) == 1 && args[0] != "spread" {
			return nil, fmt.Errorf("found the arguments %q, want none or spread", args)
		}
		return with(len(args) == 1), nil
	}
}

// plainly returns the parser of a partition without arguments.
func plainly(p Partition) func(args []string) (Partition, error) {
	return func(args []string) (Partition, error) {
		if len(args) > 0 {
			return nil, fmt.Errorf("found the arguments %q, want none", args)
		}
		return p, nil
	}
}

func parseDirichlet(args []string) (Partition, error) {
	if len(args) < 1 || len(args) > 2 {
		return nil, fmt.Errorf("found the arguments %q, want the concentration and at most a smallest shard", args)
	}
	p := Dirichlet{}
	var err error
	if p.Alpha, err = parseAlpha(args[0]); err != nil {
		return nil, err
	}
	if len(args) == 2 {
		if p.MinSize, err = strconv.Atoi(args[1]); err != nil || p.MinSize < 1 {
			return nil, fmt.Errorf("smallest shard %q, want a whole number from 1 on", args[1])
		}
	}
	if p.MinSize == defaultMinSize {
		p.MinSize = 0 // each Partition has a unique representation
	}
	return p, nil
}

func parseDirichletEqual(args []string) (Partition, error) {
	if len(args) != 1 {
		return nil, fmt.Errorf("found the arguments %q, want the concentration", args)
	}
	alpha, err := parseAlpha(args[0])
	return DirichletEqual{Alpha: alpha}, err
}

func parseAlpha(s string) (float64, error) {
	alpha, err := strconv.ParseFloat(s, 64)
	if err != nil || checkAlpha(alpha) != nil {
		return 0, fmt.Errorf("concentration %q, want a number from %g to %g", s, minAlpha, maxAlpha)
	}
	return alpha, nil
}

func parseFile(args []string) (Partition, error) {
	if len(args) != 1 || args[0] == "" {
		return nil, fmt.Errorf("found no path")
	}
	return File{Path: args[0]}, nil
}

// checkSplit validates the arguments of every Split.
func checkSplit(labels []int32, classes, agents int) error {
	if agents < 1 {
		return fmt.Errorf("%d agents, want at least 1", agents)
	}
	if len(labels) < agents {
		return fmt.Errorf("%d examples for %d agents, want at least one each: use fewer agents or more examples",
			len(labels), agents)
	}
	return checkLabels(labels, classes)
}

// sequence returns 0, 1, ... n-1.
func sequence(n int) []int32 {
	all := make([]int32, n)
	for i := range all {
		all[i] = int32(i)
	}
	return all
}

// members lists the examples of each class, ascending.
func members(labels []int32, classes int) [][]int32 {
	of := make([][]int32, classes)
	for i, y := range labels {
		of[y] = append(of[y], int32(i))
	}
	return of
}
