package kernels

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"fspda/internal/rng"
)

var _ = define("mask.cu",
	"store64 dst:p value:U",
	"iota dst:p start:u n:l",
	"stratified dst:p count:i begin:u shorter:u part:U first:U state:p scratch:p",
	"random_subsets count:i d:u words:p stride:l "+numbered("dst", Pointer)+
		numbered("stream", Uint64),
)

// Iota writes start, start+1, ... as n uint32 numbers: the mask "all".
func Iota(dst Address, start uint32, n int) Call { return call("iota", over(n), dst, int(start), n) }

// setCounter writes the counter of a stream.
func setCounter(counter Address, s rng.Stream) Call {
	return call("store64", blocks(1, 32), counter, s.Counter())
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
