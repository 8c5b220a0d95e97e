package data

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fspda/data/text"
	"fspda/device"
)

// playFile writes a play of n speeches by turns of three speakers, whose lines tell the speech.
func playFile(t *testing.T, n int) string {
	t.Helper()
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%s:\nspeech %d of %s.\n\n", []string{"ANN", "BOB", "CAT"}[i%3], i, strings.Repeat("x", i%7))
	}
	path := filepath.Join(t.TempDir(), "play.txt")
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func openPlay(t *testing.T, n, window int) *Set {
	t.Helper()
	s, err := Open("text", OpenOptions{Dir: playFile(t, n), Window: window})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// decode returns the text of a segment.
func decode(t *testing.T, s *Set, seg segment) string {
	t.Helper()
	b, err := s.Text.Decode(s.Train.windows.tokens[seg.from:seg.to])
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Each partition deals every document once, in ascending order within a shard, balanced in tokens
// where it says so, and counts tokens by speaker.
func TestDivideText(t *testing.T) {
	s := openPlay(t, 300, 8)
	docs, err := s.documents()
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range []string{"shuffled", "sorted", "dirichlet(1)", "dirichlet-equal(0.3)", "by-class",
		"contiguous"} {
		p, err := ParsePartition(spec)
		if err != nil {
			t.Fatal(err)
		}
		d, err := s.Divide(p, 3, 5)
		if err != nil {
			t.Errorf("%s: %v", spec, err)
			continue
		}
		var sum, largest, smallest int64 = 0, 0, 1 << 60
		var speeches []string
		for i, seg := range d.Set.Train.windows.segments {
			n := seg.to - seg.from
			sum, largest, smallest = sum+n, max(largest, n), min(smallest, n)
			counted := 0
			for _, c := range d.Counts()[i] {
				counted += c
			}
			if int64(counted) != n || len(d.Shards[i]) != int(n-1)/8 {
				t.Errorf("%s: agent %d has %d tokens, %d counted, %d windows", spec, i, n, counted, len(d.Shards[i]))
			}
			if spec != "contiguous" {
				speeches = append(speeches, strings.SplitAfter(decode(t, d.Set, seg), ".\n\n")...)
			}
		}
		if sum > int64(len(s.Text.Train)) || sum < int64(len(s.Text.Train))-2 {
			t.Errorf("%s: %d tokens of %d", spec, sum, len(s.Text.Train))
		}
		if balanced := spec != "dirichlet(1)" && spec != "by-class"; balanced && largest-smallest > 60 {
			t.Errorf("%s: shards of %d to %d tokens", spec, smallest, largest)
		}
		if spec == "contiguous" {
			continue
		}
		whole, _ := s.Text.Decode(s.Text.Train)
		want := strings.SplitAfter(string(whole), ".\n\n")
		want, speeches = slices.DeleteFunc(want, empty), slices.DeleteFunc(speeches, empty)
		slices.Sort(want)
		slices.Sort(speeches)
		if !slices.Equal(want, speeches) {
			t.Errorf("%s: %d speeches, want the %d of the text", spec, len(speeches), len(want))
		}
		if skew := Skew(d.Counts()); spec == "sorted" && skew < 0.9 || spec == "by-class" && skew != 1 ||
			spec == "shuffled" && skew > 0.6 {
			t.Errorf("%s: skew %v", spec, skew)
		}
		if again, _ := s.Divide(p, 3, 5); !slices.Equal(again.Set.Train.windows.tokens, d.Set.Train.windows.tokens) {
			t.Errorf("%s: another division at the second time", spec)
		}
	}
	if len(docs.labels) == 0 || s.Train.windows.len() != (len(s.Text.Train)-1)/8 {
		t.Error("the set itself changed")
	}
}

func empty(s string) bool { return s == "" }

// The batches of an agent stay in its shard, follow nanoGPT's law with iid, and cover the shard in an
// epoch.
func TestTextLoader(t *testing.T) {
	s := openPlay(t, 60, 8)
	d, err := s.Divide(Contiguous{}, 4, 1)
	if err != nil {
		t.Fatal(err)
	}
	const agent = 2
	seg := d.Set.Train.windows.segments[agent]
	seen := map[int64]bool{}
	for _, sampling := range []Sampling{IID, Epochs, Full} {
		l, err := NewLoader(d.Set.Train, d.Shards[agent], agent, LoaderOptions{Batch: 6, Sampling: sampling, Seed: 3,
			Ahead: 2})
		if err != nil {
			t.Fatal(err)
		}
		count := map[int64]int{}
		for step := range l.foreground.order.StepsPerEpoch() {
			b, err := l.Next()
			if err != nil {
				t.Fatal(err)
			}
			var again device.Batch
			if err := l.Batch(&again, step); err != nil || !slices.Equal(again.At, b.At) {
				t.Errorf("%s: step %d differs: %d, %d, %v", sampling, step, again.At, b.At, err)
			}
			if err := b.Check(&device.Code{Batch: len(b.At), Features: 8, Labels: 8}); err != nil {
				t.Error(err)
			}
			for _, at := range b.At {
				if at < seg.from || at+9 > seg.to {
					t.Errorf("%s: window at %d, outside of %v", sampling, at, seg)
				}
				count[at]++
			}
			l.Release(b)
		}
		if sampling != IID && (len(count) != len(d.Shards[agent]) || count[seg.from] != 1) {
			t.Errorf("%s: %d windows in an epoch, want %d", sampling, len(count), len(d.Shards[agent]))
		}
		if sampling == IID {
			var b device.Batch
			for step := range 4000 {
				if err := l.Batch(&b, step); err != nil {
					t.Fatal(err)
				}
				for _, at := range b.At {
					seen[at-seg.from] = true
				}
			}
			if n := int(seg.to-seg.from) - 8; len(seen) != n || !seen[0] || !seen[int64(n-1)] {
				t.Errorf("%d of %d starts were drawn", len(seen), n)
			}
		}
		l.Close()
	}
}

// Fixed windows of the validation part, and random ones.
func TestTextBatches(t *testing.T) {
	s := openPlay(t, 60, 8)
	var b device.Batch
	n := s.Test.Len()
	if want := (len(s.Text.Val) - 1) / 8; n != want {
		t.Errorf("%d windows, want %d", n, want)
	}
	if err := s.Test.Batch(&b, 1, 4); err != nil || !slices.Equal(b.At, []int64{8, 16, 24}) || b.Targets() != 24 {
		t.Errorf("%d, %v", b.At, err)
	}
	if err := s.Test.Gather(&b, []int32{0, int32(n - 1)}); err != nil || b.At[1]+9 > int64(len(s.Text.Val)) {
		t.Errorf("%d, %v", b.At, err)
	}
	if err := s.Test.Draw(&b, 50, 1, 7); err != nil || b.N() != 50 || slices.Max(b.At)+9 > int64(len(s.Text.Val)) {
		t.Errorf("%d, %v", b.At, err)
	}
	if s.Features() != 8 || s.Classes != s.Text.Vocabulary || s.BytesPerToken() != 1 || len(s.Fingerprint()) != 32 {
		t.Errorf("%+v", s)
	}
	if other := openPlay(t, 60, 9); other.Fingerprint() == s.Fingerprint() {
		t.Error("the fingerprint does not depend on the window")
	}
}

// What does not fit is refused with agent, length and remedy.
func TestTextErrors(t *testing.T) {
	s := openPlay(t, 60, 8)
	prose := filepath.Join(t.TempDir(), "prose.txt")
	if err := os.WriteFile(prose, []byte(strings.Repeat("no one speaks here. ", 50)), 0o644); err != nil {
		t.Fatal(err)
	}
	plain, err := Open("text", OpenOptions{Dir: prose, Window: 8})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		set    *Set
		spec   string
		agents int
		want   string
	}{
		{s, "contiguous", 200, "agent 0 has 6 tokens, want at least 9, a window of T = 8"},
		{s, "contiguous", 1 << 60, "agent 0 has 0 tokens, want at least 9, a window of T = 8"},
		{s, "by-class", 5, "use 3 agents"},
		{s, "shuffled(spread)", 3, "leave it out"},
		{s, "dirichlet(0.3,500)", 3, "at least 500 documents"},
		{plain, "shuffled", 2, "1 documents for 2 agents"},
	} {
		p, err := ParsePartition(c.spec)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.set.Divide(p, c.agents, 1); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.spec, err, c.want)
		}
	}
	for want, o := range map[string]OpenOptions{
		"want at least 5001, a window of 5000": {Dir: prose, Window: 5000},
		"augmentation cifar is for pictures":   {Dir: prose, Augment: CIFAR},
		"no path given":                        {},
		"windows of -1 tokens":                 {Dir: prose, Window: -1},
	} {
		if _, err := Open("text", o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if one, err := text.Synthetic(1, 40, 5); err != nil {
		t.Error(err)
	} else if _, err := FromText("x", one, 8); err == nil || !strings.Contains(err.Error(), "validation text has 5") {
		t.Errorf("a short validation text: %v", err)
	}
}

// Contiguous slices of pictures are in the order of the set.
func TestContiguous(t *testing.T) {
	labels := make([]int32, 11)
	for spec, want := range map[string][]int32{"contiguous": {3, 4, 5}, "contiguous(spread)": {4, 5, 6, 7}} {
		p, err := ParsePartition(spec)
		if err != nil {
			t.Fatal(err)
		}
		shards, err := p.Split(labels, 2, 3, 1)
		if err != nil || !slices.Equal(shards[1], want) || p.String() != spec {
			t.Errorf("%s: %d, %v", spec, shards, err)
		}
	}
}

// The synthetic text has a known entropy; its shards are contiguous.
func TestSyntheticText(t *testing.T) {
	s, err := Open("synthetic-text", OpenOptions{Seed: 1, TrainSize: 5000, TestSize: 600, Window: 16})
	if err != nil {
		t.Fatal(err)
	}
	if s.Classes != 32 || s.Floor != text.Entropy() || !strings.Contains(s.Describe(), "entropy 1.38") {
		t.Errorf("%+v: %s", s, s.Describe())
	}
	d, err := s.Divide(Contiguous{}, 5, 1)
	if err != nil || len(d.Shards[4]) != 62 || d.Counts()[0][0] != 1000 {
		t.Errorf("%+v, %v", d, err)
	}
}
