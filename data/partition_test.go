package data

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// mnistCounts are the class counts of the training labels of MNIST.
var mnistCounts = []int{5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949}

// labelled makes labels with the given class counts, the classes interleaved.
func labelled(counts []int) []int32 {
	left, total := slices.Clone(counts), 0
	for _, n := range counts {
		total += n
	}
	var labels []int32
	for len(labels) < total {
		for c := range left {
			if left[c] > 0 {
				left[c]--
				labels = append(labels, int32(c))
			}
		}
	}
	return labels
}

// equal is n counts of k.
func equal(n, k int) []int { return slices.Repeat([]int{k}, n) }

func mustSplit(t testing.TB, p Partition, labels []int32, classes, agents int, seed uint64) [][]int32 {
	t.Helper()
	shards, err := p.Split(labels, classes, agents, seed)
	if err != nil {
		t.Fatal(err)
	}
	return shards
}

// unused checks that no example is used twice and returns the number of unused ones.
func unused(t *testing.T, shards [][]int32, examples int) int {
	t.Helper()
	seen := make([]bool, examples)
	left := examples
	for agent, shard := range shards {
		for _, e := range shard {
			if seen[e] {
				t.Fatalf("agent %d: example %d was dealt before", agent, e)
			}
			seen[e] = true
			left--
		}
	}
	return left
}

func sizes(shards [][]int32) []int {
	var n []int
	for _, s := range shards {
		n = append(n, len(s))
	}
	return n
}

// All partitions: shards are disjoint, the number of unused examples is as documented, and a seed
// repeats.
func TestPartitionsAreDisjointAndRepeat(t *testing.T) {
	labels := labelled([]int{103, 90, 110, 100}) // 403 examples
	lists := filepath.Join(t.TempDir(), "lists.txt")
	writeFile(t, lists, []byte("0 1 2\n3\n4\n5,6\n"))
	for _, c := range []struct {
		spec   string
		unused int
		seeded bool
	}{
		{"shuffled", 3, true}, {"shuffled(spread)", 0, true}, {"sorted", 3, false}, {"sorted(spread)", 0,
			false}, {"by-class", 0, false},
		{"dirichlet(0.3)", 0, true}, {"dirichlet(100,50)", 0, true}, {"dirichlet-equal(0.3)", 3,
			true}, {"dirichlet-equal(0.0001)", 3, true},
		{"file(" + lists + ")", 396, false},
	} {
		p, err := ParsePartition(c.spec)
		if err != nil {
			t.Fatal(err)
		}
		if p.String() != c.spec {
			t.Errorf("%s comes back as %s", c.spec, p)
		}
		shards := mustSplit(t, p, labels, 4, 4, 1)
		if got := unused(t, shards, len(labels)); got != c.unused || len(shards) != 4 {
			t.Errorf("%s: %d examples unused and %d shards, want %d and 4", c.spec, got, len(shards), c.unused)
		}
		same := func(seed uint64) bool {
			return slices.EqualFunc(shards, mustSplit(t, p, labels, 4, 4, seed), slices.Equal[[]int32])
		}
		if !same(1) {
			t.Errorf("%s: the same seed gives other shards", c.spec)
		}
		if same(2) == c.seeded {
			t.Errorf("%s: another seed gives the same shards: %v", c.spec, !c.seeded)
		}
	}
}

func TestParsePartitionIsCanonical(t *testing.T) {
	for spec, want := range map[string]Partition{
		" shuffled ":             Shuffled{},
		"sorted( spread )":       Sorted{Spread: true},
		"dirichlet(0.30,10)":     Dirichlet{Alpha: 0.3},
		"dirichlet(3e-1, 20)":    Dirichlet{Alpha: 0.3, MinSize: 20},
		"dirichlet-equal( 1.0 )": DirichletEqual{Alpha: 1},
		"file( a,b (1).txt )":    File{Path: "a,b (1).txt"},
	} {
		p, err := ParsePartition(spec)
		if err != nil || p != want {
			t.Errorf("%q is %#v with error %v, want %#v", spec, p, err, want)
			continue
		}
		if again, err := ParsePartition(p.String()); err != nil || again != p {
			t.Errorf("%q comes back as %#v with error %v", p, again, err)
		}
	}
}

func TestParsePartitionRefuses(t *testing.T) {
	for spec, want := range map[string]string{
		"":                   "is not known; accepted:\n  contiguous",
		"dirichlet-eqal(1)":  "did you mean dirichlet-equal?; accepted:",
		"shuffled(5)":        "want none or spread; accepted: shuffled, shuffled(spread)",
		"sorted(a,b)":        "want none or spread",
		"by-class(1)":        "want none",
		"dirichlet":          "want the concentration",
		"dirichlet()":        `concentration ""`,
		"dirichlet(0)":       `concentration "0"`,
		"dirichlet(NaN)":     "want a number from 0.0001",
		"dirichlet(Inf)":     "want a number",
		"dirichlet(1,0)":     `smallest shard "0"`,
		"dirichlet(1,2,3)":   "at most a smallest shard",
		"dirichlet-equal":    "want the concentration",
		"dirichlet-equal(x)": `concentration "x"`,
		"dirichlet(0.3":      "does not close",
		"file()":             "no path",
		"file":               "no path",
	} {
		if p, err := ParsePartition(spec); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, error %v, want one with %q", spec, p, err, want)
		}
	}
}

// Impossible requests are errors of every partition.
func TestSplitRefuses(t *testing.T) {
	for _, p := range []Partition{Shuffled{}, Sorted{}, ByClass{}, Dirichlet{Alpha: 1}, DirichletEqual{Alpha: 1},
		File{Path: "x"}} {
		for want, split := range map[string]func() ([][]int32, error){
			"0 agents":                  func() ([][]int32, error) { return p.Split([]int32{0, 1}, 2, 0, 1) },
			"2 examples for 3 agents":   func() ([][]int32, error) { return p.Split([]int32{0, 1}, 3, 3, 1) },
			"label 2 of example 1":      func() ([][]int32, error) { return p.Split([]int32{0, 2}, 2, 2, 1) },
			"label -1 of example 1":     func() ([][]int32, error) { return p.Split([]int32{0, -1}, 2, 2, 1) },
			"label -1 of example 0, wa": func() ([][]int32, error) { return p.Split([]int32{-1, 0}, 2, 2, 1) },
		} {
			if _, err := split(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %v, want one with %q", p, err, want)
			}
		}
	}
}
