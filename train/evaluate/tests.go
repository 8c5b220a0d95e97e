package evaluate

import (
	"fspda/data"
	"fspda/device"
	"fspda/train/config"
)

// testExamples are the examples on which a row scores models.
type testExamples interface {
	len() int
	// read fills dst with examples from to to-1
	read(dst *device.Batch, from, to int) error
}

// testsAt returns the examples of the row of iteration t: the test set, eval_test examples of it that
// are evenly spaced, since the set may be sorted, or eval_random batches of random windows.
func testsAt(s *config.Setup, t int) (testExamples, error) {
	k, n := s.Config.EvalTest, s.Set.Test.Len()
	switch {
	case s.Config.EvalRandom > 0:
		var w randomWindows
		return &w, s.Set.Test.Draw(&w.all, s.Config.EvalRandom*s.Config.Batch, s.Config.Seed, uint64(t))
	case k == 0 || k >= n:
		return wholeSet{s.Set.Test}, nil
	}
	some := someOfSet{s.Set.Test, make([]int32, k)}
	for i := range some.examples {
		some.examples[i] = int32(i * n / k)
	}
	return some, nil
}

// wholeSet is the whole test set.
type wholeSet struct{ data.Split }

func (w wholeSet) len() int                                   { return w.Len() }
func (w wholeSet) read(dst *device.Batch, from, to int) error { return w.Batch(dst, from, to) }

// someOfSet are examples of the test set.
type someOfSet struct {
	data.Split
	examples []int32
}

func (s someOfSet) len() int { return len(s.examples) }
func (s someOfSet) read(dst *device.Batch, from, to int) error {
	return s.Gather(dst, s.examples[from:to])
}

// randomWindows are windows of text from anywhere.
type randomWindows struct{ all device.Batch }

func (r *randomWindows) len() int { return r.all.N() }
func (r *randomWindows) read(dst *device.Batch, from, to int) error {
	at := append(dst.At[:0], r.all.At[from:to]...)
	*dst = r.all
	dst.At = at
	return nil
}
