package data

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// The shards of MNIST sorted by label for ten agents, as class:count.
func TestSortedShardsOfMNIST(t *testing.T) {
	const want = "0:5923,1:77 | 1:6000 | 1:665,2:5335 | 2:623,3:5377 | 3:754,4:5246 | 4:596,5:5404 | " +
		"5:17,6:5918,7:65 | 7:6000 | " +
		"7:200,8:5800 | 8:51,9:5949"
	labels := labelled(mnistCounts)
	var agents []string
	for _, row := range Histogram(labels, 10, mustSplit(t, Sorted{}, labels, 10, 10, 0)) {
		var parts []string
		for c, n := range row {
			if n > 0 {
				parts = append(parts, fmt.Sprintf("%d:%d", c, n))
			}
		}
		agents = append(agents, strings.Join(parts, ","))
	}
	if got := strings.Join(agents, " | "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// The sort is stable: within a class the examples keep their order.
func TestSortedIsStable(t *testing.T) {
	got := mustSplit(t, Sorted{Spread: true}, []int32{1, 0, 1, 0, 1}, 2, 2, 0)
	if !slices.Equal(got[0], []int32{1, 3, 0}) || !slices.Equal(got[1], []int32{2, 4}) {
		t.Errorf("got %v, want [[1 3 0] [2 4]]", got)
	}
}

func TestShuffledSizes(t *testing.T) {
	labels := labelled(equal(10, 10))
	if got := sizes(mustSplit(t, Shuffled{}, labels, 10, 7, 1)); !slices.Equal(got, equal(7, 14)) {
		t.Errorf("dropped: sizes %v, want seven times 14", got)
	}
	if got := sizes(mustSplit(t, Shuffled{Spread: true}, labels, 10, 7, 1)); !slices.Equal(got,
		[]int{15, 15, 14, 14, 14, 14, 14}) {
		t.Errorf("spread: sizes %v, want two of 15 and five of 14", got)
	}
}

// A shuffled shard has the mix of the whole: with 600 examples, each class within five standard
// deviations of 60.
func TestShuffledMixes(t *testing.T) {
	labels := labelled(equal(10, 600))
	for agent, row := range Histogram(labels, 10, mustSplit(t, Shuffled{}, labels, 10, 10, 3)) {
		for c, n := range row {
			if n < 25 || n > 95 {
				t.Errorf("agent %d has %d examples of class %d, expected about 60", agent, n, c)
			}
		}
	}
}

func TestByClass(t *testing.T) {
	labels := labelled(mnistCounts)
	shards := mustSplit(t, ByClass{}, labels, 10, 10, 0)
	if got := sizes(shards); !slices.Equal(got, mnistCounts) {
		t.Errorf("sizes %v, want %v", got, mnistCounts)
	}
	if skew := Skew(Histogram(labels, 10, shards)); skew != 1 {
		t.Errorf("skew %v, want 1", skew)
	}
	if _, err := (ByClass{}).Split(labels, 10, 8, 0); err == nil || !strings.Contains(err.Error(),
		"8 agents and 10 classes") {
		t.Errorf("error %v, want one about 8 agents and 10 classes", err)
	}
	if _, err := (ByClass{}).Split([]int32{0, 0, 2}, 3, 3, 0); err == nil || !strings.Contains(err.Error(),
		"no example of class 1") {
		t.Errorf("error %v, want one about class 1", err)
	}
}
