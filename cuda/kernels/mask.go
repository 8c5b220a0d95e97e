package kernels

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"

	"fspda/internal/rng"
)

var _ = define("mask.cu",
	"stream_key state:p hash:U length:i k0:U k1:U k2:U k3:U",
	"store64 dst:p value:U",
	"iota dst:p start:u n:l",
	"stratified dst:p count:i begin:u shorter:u part:U first:U state:p scratch:p",
	"random_subset dst:p count:i d:u offset:u words:p state:p",
	"random_subsets count:i d:u words:p stride:l "+pointers("dst", MostEach)+counters("stream", MostEach),
	"bernoulli dst:p capacity:l end:l survival:p guide:p longest:i state:p count:p",
)

// Iota writes start, start+1, ... as n uint32 numbers: the mask "all".
func Iota(dst Address, start uint32, n int) Call { return call("iota", over(n), dst, int(start), n) }

// StreamKey writes the counter of the stream rng.New(seed, name, key...) to a uint64. base is
// rng.Base(seed, name).
func StreamKey(counter Address, base uint64, key ...uint64) Call {
	if len(key) > 4 {
		panic(fmt.Sprintf("kernels: a stream key has %d numbers, at most 4 are allowed", len(key)))
	}
	var k [4]uint64
	copy(k[:], key)
	return call("stream_key", blocks(1, 32), counter, base, len(key), k[0], k[1], k[2], k[3])
}

// setCounter writes the counter of a stream.
func setCounter(counter Address, s rng.Stream) Call {
	return call("store64", blocks(1, 32), counter, s.Counter())
}

// Block draws dist's mask "block": k adjacent coordinates of d, cyclically.
func Block(dst Address, d, k int, s rng.Stream) []Call {
	start := s.IntN(d)
	wrapped := max(0, start+k-d) // these come first
	var calls []Call
	if wrapped > 0 {
		calls = append(calls, Iota(dst, 0, wrapped))
	}
	return append(calls, Iota(dst+4*Address(wrapped), uint32(start), k-wrapped))
}

// StratifiedScratch is the initial value of the scratch of Stratified. Each use restores it.
var StratifiedScratch = [2]uint32{math.MaxUint32, 0}

// Stratified draws dist's mask "stratified": k of d coordinates, as uint32 numbers. counter is a
// uint64, scratch is StratifiedScratch.
func Stratified(dst Address, d, k int, s rng.Stream, counter, scratch Address) []Call {
	f := filler{dst: dst, counter: counter, scratch: scratch, shorter: d / k}
	if extra := uint64(d % k); extra != 0 {
		quotient, _ := bits.Div64(extra, 0, uint64(k))
		f.part = quotient + 1
	}
	if f.part == 0 {
		return []Call{setCounter(counter, s), f.fill(0, k, 0, 0)}
	}
	// The blocks are rotated by an offset: first come the blocks that passed the end, then the
	// others; one straddles the end.
	offset := s.IntN(d)
	begin := func(b int) int {
		hi, lo := bits.Mul64(uint64(b), uint64(d))
		q, _ := bits.Div64(hi, lo, uint64(k))
		return offset + int(q)
	}
	passed := firstWhere(k, func(b int) bool { return begin(b) >= d })
	straddler := begin(passed-1) + s.IntN(begin(passed)-begin(passed-1))
	at, where := 0, k-1
	if straddler >= d {
		at, where, straddler = 1, 0, straddler-d
	}
	return slices.DeleteFunc([]Call{
		setCounter(counter, s),
		Iota(dst+4*Address(where), uint32(straddler), 1),
		f.fill(at, k-passed, begin(passed)-d, passed),
		f.fill(at+k-passed, passed-1, offset, 0),
	}, Call.Empty)
}

// StratifiedFrom is Stratified with a stream that starts at a counter.
func StratifiedFrom(dst Address, d, k int, from uint64, counter, scratch Address) []Call {
	return Stratified(dst, d, k, rng.FromCounter(from), counter, scratch)
}

// firstWhere returns the first of 0..n-1 for which a monotone predicate holds, or n.
func firstWhere(n int, is func(int) bool) int {
	lo := 0
	for hi := n; lo < hi; {
		if mid := (lo + hi) / 2; is(mid) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo
}

// filler draws parts of a stratified mask.
type filler struct {
	dst, counter, scratch Address
	shorter               int
	part                  uint64
}

// fill draws from count blocks, starting at block first, which begins at coordinate begin, to
// position at of the mask.
func (f filler) fill(at, count, begin, first int) Call {
	return call("stratified", over((count+1)/2), f.dst+4*Address(at), count, begin, f.shorter, f.part, uint64(first),
		f.counter, f.scratch)
}

// SubsetWords returns the size of Subset's bitmap in uint32 numbers, which must be zero before its
// first use.
func SubsetWords(d int) int { return (d + 31) / 32 }

// Subset draws dist's mask "randk": k of d coordinates. words is scratch of SubsetWords(d) numbers,
// counter a uint64.
func Subset(dst Address, d, k int, s rng.Stream, counter, words Address) []Call {
	return Layers(dst, []int{d}, []int{k}, s, counter, words)
}

// Layers draws dist's mask "randk-per-layer": a number of coordinates of each tensor. words is
// scratch for the longest tensor.
func Layers(dst Address, sizes, counts []int, s rng.Stream, counter, words Address) []Call {
	calls := []Call{setCounter(counter, s)}
	offset := 0
	for l, size := range sizes {
		calls = append(calls, call("random_subset", blocks(1024, 1024), dst, counts[l], size, offset, words, counter))
		offset += size
		dst += 4 * Address(counts[l])
	}
	return calls
}

// sharedWords is the longest bitmap that is kept in shared memory.
const sharedWords = 8192

// SubsetsWords returns the size of Subsets' bitmaps in uint32 numbers, which must be zero before
// their first use. It is 0 for short vectors.
func SubsetsWords(d, masks int) int {
	if SubsetWords(d) <= sharedWords {
		return 0
	}
	return SubsetWords(d) * masks
}

// Subsets draws up to MostEach masks "randk", of k of d coordinates each, in one launch, from
// streams that start at counters. words is scratch of SubsetsWords(d, len(dst)) numbers.
func Subsets(dst []Address, d, k int, counters []uint64, words Address) Call {
	if len(dst) < 1 || len(dst) > MostEach || len(counters) != len(dst) {
		panic(fmt.Sprintf("kernels: Subsets of %d masks from %d streams, want 1 to %d masks and as many streams",
			len(dst), len(counters), MostEach))
	}
	const fixed = 4
	args := make([]uint64, fixed+2*MostEach)
	args[0], args[1], args[2], args[3] = uint64(uint32(k)), uint64(uint32(d)), uint64(words), uint64(SubsetWords(d))
	for i := range dst {
		args[fixed+i], args[fixed+MostEach+i] = uint64(dst[i]), counters[i]
	}
	l := blocks(1024, 1024)
	l.Grid[2] = uint32(len(dst))
	if SubsetsWords(d, len(dst)) == 0 {
		args[2], l.Shared = 0, uint32(4*SubsetWords(d))
	}
	return Call{Kernel: table["random_subsets"], Launch: l, Args: args}
}

// counters returns n parameters for counters of streams.
func counters(name string, n int) string {
	var s strings.Builder
	for i := range n {
		fmt.Fprintf(&s, "%s%d:U ", name, i)
	}
	return s.String()
}

// Gaps is the tables of a probability below 1 in device memory: see GapTables.
type Gaps struct {
	Survival, Guide Address
	Longest         int
}

// GapTables computes the tables from which Bernoulli draws the gaps between coordinates taken with
// probability p: survival[g] is (1-p)^g·2^64, followed by a 0 after the longest gap; guide[b] is
// the shortest gap of a number whose upper 12 bits are b.
func GapTables(p float64) (survival []uint64, guide []uint16) {
	longest := int(min(math.Ceil(4/p), 4096))
	stay := -uint64(max(math.Ldexp(p, 64), 1))
	survival, guide = make([]uint64, longest+2), make([]uint16, 4096)
	survival[1] = stay
	for k := 2; k <= longest; k++ {
		survival[k], _ = bits.Mul64(survival[k-1], stay)
	}
	k := 0
	for b := len(guide) - 1; b >= 0; b-- {
		largest := uint64(b)<<52 | (1<<52 - 1)
		for k < longest && largest < survival[k+1] {
			k++
		}
		guide[b] = uint16(k)
	}
	return survival, guide
}

// Bernoulli draws dist's mask "bernoulli" from d coordinates: it writes their number to count
// (uint32) and the first capacity of them to dst. If there are more, the caller must draw again
// with more capacity. counter is a uint64.
func Bernoulli(dst Address, capacity, d int, g Gaps, s rng.Stream, counter, count Address) []Call {
	return []Call{
		setCounter(counter, s),
		call("bernoulli", blocks(1024, 1024), dst, capacity, d, g.Survival, g.Guide, g.Longest, counter, count),
	}
}
