package kernels

import (
	"fmt"
	"math"
	"strings"

	"fspda/device"
)

var _ = define("vector.cu",
	"copy_words dst:p src:p n:l",
	"fill dst:p n:l value:f",
	"combine1 dst:p n:l v0:p a0:f",
	"combine2 dst:p n:l v0:p a0:f v1:p a1:f",
	"combine3 dst:p n:l v0:p a0:f v1:p a1:f v2:p a2:f",
	"combine4 dst:p n:l v0:p a0:f v1:p a1:f v2:p a2:f v3:p a3:f",
	"combine5 dst:p n:l v0:p a0:f v1:p a1:f v2:p a2:f v3:p a3:f v4:p a4:f",
	"combine6 dst:p n:l v0:p a0:f v1:p a1:f v2:p a2:f v3:p a3:f v4:p a4:f v5:p a5:f",
	"combine_list dst:p n:l v:p a:p terms:i",
	"combine_each n:l terms:i "+numbered("dst", Pointer)+
		numbered("x", Pointer)+numbered("y", Pointer)+numbered("z", Pointer)+
		numbered("a", Float32)+numbered("b", Float32)+numbered("c", Float32),
	"gather dst:p src:p idx:p k:l",
	"scatter_add dst:p v:p a:f idx:p k:l",
	"move_copy q:p copy:p v:p w:p idx:p k:l",
	"add_diff own:p other:p idx:p k:l v0:p a0:f v1:p a1:f",
	"add_diff_list own:p other:p idx:p k:l v:p a:p terms:i",
	"add_diffs n:l start:p scale:f own:p others:i v0:p a0:f v1:p a1:f v2:p a2:f v3:p a3:f v4:p a4:f v5:p a5:f "+
		"x:p b:f y:p c:f",
	"add_diffs_list n:l start:p scale:f own:p v:p a:p others:i t:p b:p terms:i",
	"add y:p a:p b:p n:l",
	"scale_by y:p x:p s:p a:f n:l",
	"adamw g:p m:p v:p x:p n:l beta1:f rest1:f beta2:f rest2:f scale1:f scale2:f eps:f decay:f most:f",
	"adamw_each n:l "+numbered("g", Pointer)+numbered("m", Pointer)+
		numbered("v", Pointer)+numbered("x", Pointer)+
		"beta1:f rest1:f beta2:f rest2:f scale1:f scale2:f eps:f decay:f most:f",
	"combine_within ranges:p count:i total:l terms:i "+numbered("dst", Pointer)+
		numbered("x", Pointer)+numbered("y", Pointer)+numbered("z", Pointer)+
		numbered("a", Float32)+numbered("b", Float32)+numbered("c", Float32),
	"combine_within_list ranges:p count:i total:l dst:p v:p a:p terms:i",
	"adamw_within ranges:p count:i total:l "+numbered("g", Pointer)+numbered("m", Pointer)+
		numbered("v", Pointer)+numbered("x", Pointer)+
		"beta1:f rest1:f beta2:f rest2:f scale1:f scale2:f eps:f decay:f most:f",
	"move_average y:p x:p avg:p momentum:p a:d n:l",
	"multiply_views c:p a:p b:p rows:l cols:l inner:l c_down:l c_right:l a_down:l a_right:l b_down:l b_right:l "+
		"alpha:d beta:f",
	"dot_blocks part:p x:p y:p n:l",
	"dot_sum out64:p out32:p part:p parts:l scale:d stride:l",
)

// MaxTerms is the number of terms that Combine and AddDiffs take as arguments. More are listed in
// device memory.
const MaxTerms = 6

// MaxTermsEach is the number of terms of CombineEach, for up to MostEach vectors.
const (
	MaxTermsEach = 3
	MostEach     = 16
)

// numbered returns MostEach parameters of a kind, name0 and so on.
func numbered(name string, kind Kind) string {
	var s strings.Builder
	for i := range MostEach {
		fmt.Fprintf(&s, "%s%d:%c ", name, i, kind)
	}
	return s.String()
}

// Term is a summand A·V.
type Term struct {
	A float32
	V Address
}

// List is terms in device memory: their addresses (uint64) and coefficients (float32).
type List struct {
	V, A Address
	Len  int
}

// Copy copies n 32-bit words. src may be host memory that the GPU can read.
func Copy(dst, src Address, n int) Call { return call("copy_words", over((n+3)/4), dst, src, n) }

// Fill sets n float32 numbers.
func Fill(dst Address, n int, value float32) Call { return call("fill", over(n), dst, n, value) }

// CombineEach is Combine for several vectors of n numbers in one launch: dst[i] = Σ terms[i]. All
// sums have as many terms as terms[0], and no output is an input of another vector.
func CombineEach(dst []Address, n int, terms [][]Term) Call {
	k := len(terms[0])
	if len(dst) < 1 || len(dst) > MostEach || k < 1 || k > MaxTermsEach {
		panic(fmt.Sprintf("kernels: CombineEach of %d vectors and %d terms, want 1 to %d and 1 to %d", len(dst), k,
			MostEach, MaxTermsEach))
	}
	l := over((n + combinedNumbers - 1) / combinedNumbers)
	l.Grid[2] = uint32(len(dst))
	return Call{Kernel: table["combine_each"], Launch: l, Args: append([]uint64{uint64(n), uint64(k)},
		termArgs(dst, terms)...)}
}

// termArgs returns the arguments of a sum for each of several vectors.
func termArgs(dst []Address, terms [][]Term) []uint64 {
	const by = (1 + MaxTermsEach) * MostEach
	args := make([]uint64, by+MaxTermsEach*MostEach)
	for i, d := range dst {
		args[i] = uint64(d)
		for j, t := range terms[i] {
			args[(1+j)*MostEach+i], args[by+j*MostEach+i] = uint64(t.V), uint64(math.Float32bits(t.A))
		}
	}
	return args
}

// Combine is device.Device.Combine for one to MaxTerms terms.
func Combine(dst Address, n int, terms ...Term) Call {
	if len(terms) < 1 || len(terms) > MaxTerms {
		panic(fmt.Sprintf("kernels: Combine of %d terms, want 1 to %d", len(terms), MaxTerms))
	}
	// call is avoided, because this runs several times per iteration of each agent
	args := make([]uint64, 2, 2+2*MaxTerms)
	args[0], args[1] = uint64(dst), uint64(n)
	for _, t := range terms {
		args = append(args, uint64(t.V), uint64(math.Float32bits(t.A)))
	}
	each := combinedNumbers
	if len(terms) <= fewTerms {
		each *= 2
	}
	return Call{Kernel: combines[len(terms)], Launch: over((n + each - 1) / each), Args: args}
}

// combinedNumbers is the numbers of a thread of combine: four times COMBINE_FOURS of vector.cuh.
// With at most fewTerms terms there are twice as many, COMBINE_MOST.
const combinedNumbers, fewTerms = 12, 3

// combines holds the kernels by number of terms.
var combines [MaxTerms + 1]*Kernel

func init() {
	for k := 1; k <= MaxTerms; k++ {
		combines[k] = table[fmt.Sprintf("combine%d", k)]
	}
}

// CombineList is Combine for any number of terms, at least one.
func CombineList(dst Address, n int, terms List) Call {
	return call("combine_list", over(n), dst, n, terms.V, terms.A, terms.Len)
}

// two returns one or two terms as an array.
func two(what string, terms []Term) (t [2]Term) {
	if len(terms) < 1 || len(terms) > 2 {
		panic(fmt.Sprintf("kernels: %s to %d terms, want 1 or 2", what, len(terms)))
	}
	copy(t[:], terms)
	return t
}

// AddDiffList is AddDiff for any number of terms.
func AddDiffList(own, other, idx Address, k int, to List) Call {
	return call("add_diff_list", over(k), own, other, idx, k, to.V, to.A, to.Len)
}

// AddDiffs is device.Device.AddDiffs for up to MaxTerms others and one or two terms. A start
// without a vector is zero.
func AddDiffs(n int, start Term, own Address, others []Term, to ...Term) Call {
	if len(others) > MaxTerms {
		panic(fmt.Sprintf("kernels: AddDiffs of %d others, want %d at most", len(others), MaxTerms))
	}
	args := []any{n, start.V, start.A, own, len(others)}
	var six [MaxTerms]Term
	copy(six[:], others)
	t := two("AddDiffs", to)
	for _, o := range append(six[:], t[:]...) {
		args = append(args, o.V, o.A)
	}
	return call("add_diffs", over(n), args...)
}

// AddDiffsList is AddDiffs for any number of others and terms.
func AddDiffsList(n int, start Term, own Address, others, to List) Call {
	return call("add_diffs_list", over(n), n, start.V, start.A, own, others.V, others.A, others.Len, to.V, to.A, to.Len)
}

// Add is device.Add of n numbers.
func Add(y, a, b Address, n int) Call { return call("add", over(n), y, a, b, n) }

// ScaleBy is device.ScaleBy of n numbers.
func ScaleBy(y, x, s Address, a float32, n int) Call { return call("scale_by", over(n), y, x, s, a, n) }

// AdamVectors is the vectors of one AdamW.
type AdamVectors struct{ G, M, V, X Address }

// AdamW is device.Device.AdamW of n numbers.
func AdamW(a device.Adam, of AdamVectors, n int) Call {
	args := append([]uint64{uint64(of.G), uint64(of.M), uint64(of.V), uint64(of.X), uint64(n)}, adamArgs(a)...)
	return Call{Kernel: table["adamw"], Launch: over(n), Args: args}
}

// AdamWEach is AdamW for 1 to MostEach agents with the same coefficients in one launch.
func AdamWEach(a device.Adam, agents []AdamVectors, n int) Call {
	if len(agents) < 1 || len(agents) > MostEach {
		panic(fmt.Sprintf("kernels: AdamWEach of %d agents, want 1 to %d", len(agents), MostEach))
	}
	l := over(n)
	l.Grid[2] = uint32(len(agents))
	return Call{Kernel: table["adamw_each"], Launch: l, Args: append([]uint64{uint64(n)},
		adamEachArgs(a, agents)...)}
}

// adamEachArgs returns the arguments of an AdamW for each of several agents.
func adamEachArgs(a device.Adam, agents []AdamVectors) []uint64 {
	args := make([]uint64, 4*MostEach)
	for i, of := range agents {
		for j, at := range []Address{of.G, of.M, of.V, of.X} {
			args[j*MostEach+i] = uint64(at)
		}
	}
	return append(args, adamArgs(a)...)
}

func adamArgs(a device.Adam) (args []uint64) {
	for _, c := range []float64{a.Beta1, a.Rest1, a.Beta2, a.Rest2, a.Scale1, a.Scale2, a.Eps, a.Decay,
		a.Most()} {
		args = append(args, uint64(math.Float32bits(float32(c))))
	}
	return args
}

// MoveAverage is device.MoveAverage of n numbers.
func MoveAverage(y, x, avg, momentum Address, a float64, n int) Call {
	return call("move_average", over(n), y, x, avg, momentum, a, n)
}

// dotBlock is the number of products per partial sum: DOT_BLOCK of vector.cuh.
const dotBlock = 4096

// DotParts returns the size of Dot's scratch in float64 numbers.
func DotParts(n int) int { return (n + dotBlock - 1) / dotBlock }

// Dot computes scale·Σ x[k]·y[k] with the bits of device.Device.Dot, and writes it to out64
// (float64) and out32 (float32), each of which may be 0. part is scratch of DotParts(n) float64
// numbers. The two calls must run in order. device.HalfSquare is Dot of x with itself and scale
// a/2.
func Dot(out64, out32, x, y, part Address, n int, scale float64) [2]Call {
	const warps = 4 // the warps of a block of dot_blocks
	parts := DotParts(n)
	return [2]Call{
		call("dot_blocks", blocks(32*parts, 32*warps), part, x, y, n),
		call("dot_sum", blocks(threads, threads), out64, out32, part, parts, scale, 1),
	}
}

// productTile is the rows and columns that a block of multiply_views computes, PRODUCT_TILE of
// vector.cu.
const productTile = 32

// Multiply is device.Multiply of views of the vectors c, a and b.
func Multiply(c, a, b Address, p device.MatrixProduct) Call {
	tiles := func(n int) int { return (n + productTile - 1) / productTile }
	at := func(v Address, w device.View) Address { return v + 4*Address(w.Offset) }
	return call("multiply_views", blocks(threads*tiles(p.C.Rows)*tiles(p.C.Cols), threads), at(c, p.C), at(a, p.A),
		at(b, p.B), p.C.Rows, p.C.Cols, p.A.Cols, p.C.Down, p.C.Right, p.A.Down, p.A.Right, p.B.Down, p.B.Right,
		p.Alpha, float32(p.Beta))
}

// Ranges is Total coordinates of vectors, in Count ranges that ascend. List has the first
// coordinate of each, and how many coordinates the ranges before it have, as int64 numbers.
type Ranges struct {
	List         Address
	Count, Total int
}

// withinEach is the coordinates of a thread: WITHIN_EACH of vector.cu.
const withinEach = 4

// call returns a call of a kernel for the coordinates of vectors, with further arguments.
func (r Ranges) call(name string, vectors int, args ...uint64) Call {
	if vectors < 1 || vectors > MostEach {
		panic(fmt.Sprintf("kernels: %s of %d vectors, want 1 to %d", name, vectors, MostEach))
	}
	l := over((r.Total + withinEach - 1) / withinEach)
	l.Grid[2] = uint32(vectors)
	return table[name].call(l, append([]uint64{uint64(r.List), uint64(r.Count), uint64(r.Total)}, args...)...)
}

// CombineWithin is CombineEach for the coordinates of ranges.
func CombineWithin(r Ranges, dst []Address, terms [][]Term) Call {
	return r.call("combine_within", len(dst), append([]uint64{uint64(len(terms[0]))}, termArgs(dst, terms)...)...)
}

// CombineWithinList is CombineList for the coordinates of ranges, also without terms.
func CombineWithinList(r Ranges, dst Address, terms List) Call {
	return r.call("combine_within_list", 1, uint64(dst), uint64(terms.V), uint64(terms.A), uint64(terms.Len))
}

// AdamWWithin is AdamWEach for the coordinates of ranges.
func AdamWWithin(r Ranges, a device.Adam, agents []AdamVectors) Call {
	return r.call("adamw_within", len(agents), adamEachArgs(a, agents)...)
}
