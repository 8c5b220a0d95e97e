package data

import (
	"fmt"
	"sort"

	"fspda/device"
	"fspda/internal/rng"
)

// textWindows are the examples of a Split of text: windows of length+1 tokens, of which each token but
// the last predicts the next. The examples, by number, are those at multiples of length in each
// segment.
type textWindows struct {
	tokens   []uint16
	length   int
	segments []segment
	key      *device.CacheKey
}

// segment is a part of the stream that no window leaves: the tokens of one agent.
type segment struct {
	from, to int64
	first    int32 // number of its first window
}

// newWindows divides a stream into segments that end at the given places, each of which begins where
// the one before ends.
func newWindows(tokens []uint16, length int, ends ...int64) *textWindows {
	w := &textWindows{tokens: tokens, length: length, key: new(device.CacheKey)}
	from, first := int64(0), int32(0)
	for _, end := range ends {
		s := segment{from, end, first}
		w.segments = append(w.segments, s)
		from, first = end, first+int32(s.count(length))
	}
	return w
}

func (s segment) count(length int) int { return max(0, int((s.to-s.from-1)/int64(length))) }

func (w *textWindows) len() int {
	last := w.segments[len(w.segments)-1]
	return int(last.first) + last.count(w.length)
}

func (w *textWindows) shards() [][]int32 {
	all := make([][]int32, len(w.segments))
	for i, s := range w.segments {
		all[i] = sequence(s.count(w.length))
		for k := range all[i] {
			all[i][k] += s.first
		}
	}
	return all
}

func (w *textWindows) segment(example int32) segment {
	return w.segments[sort.Search(len(w.segments), func(i int) bool { return w.segments[i].first > example })-1]
}

func (w *textWindows) start(example int32) int64 {
	s := w.segment(example)
	return s.from + int64(example-s.first)*int64(w.length)
}

// reserve sizes dst for n examples.
func (w *textWindows) reserve(dst *device.Batch, n int) {
	at := grown(dst.At, n)
	*dst = device.Batch{Tokens: w.tokens, At: at, Length: w.length, CacheKey: w.key}
}

// batch fills dst with consecutive examples.
func (w *textWindows) batch(dst *device.Batch, from, to int) {
	w.reserve(dst, to-from)
	for i := range dst.At {
		dst.At[i] = w.start(int32(from + i))
	}
}

// gather fills dst with the given examples.
func (w *textWindows) gather(dst *device.Batch, examples []int32) {
	w.reserve(dst, len(examples))
	for i, e := range examples {
		dst.At[i] = w.start(e)
	}
}

// draw fills dst with n windows of a segment that begin anywhere in it, each with the same
// probability, one draw a window.
func (w *textWindows) draw(dst *device.Batch, of segment, n int, s *rng.Stream) {
	w.reserve(dst, n)
	for i := range dst.At {
		dst.At[i] = of.from + int64(s.IntN(int(of.to-of.from)-w.length))
	}
}

// Draw fills dst with n windows of a split of text that begin anywhere in it, each with the same
// probability. The choice is a function of the seed and the key.
func (s Split) Draw(dst *device.Batch, n int, seed uint64, key ...uint64) error {
	if s.windows == nil {
		return fmt.Errorf("data: random windows of a set that is not text")
	}
	stream := rng.New(seed, "windows", key...)
	last := s.windows.segments[len(s.windows.segments)-1]
	s.windows.draw(dst, segment{to: last.to}, n, &stream)
	return nil
}
