package device

// Vector is a flat vector of numbers that lives on one Device. Only that Device looks inside.
type Vector interface {
	Len() int
}

// Index is a sorted set of distinct coordinates of a vector, kept where its Device can read it. A
// nil Index stands for all coordinates.
type Index interface {
	Len() int
}

// Term is one summand A·V of a combination.
type Term struct {
	A float64
	V Vector
}

// Part is what one of several adds to a vector: A·V at the coordinates Idx, one for each number of
// V.
type SparseTerm struct {
	A   float64
	V   Vector
	Idx Index
}

// Device owns vectors and computes with them.
type Device interface {
	// Name is how people choose and recognise the device: "cpu", "cuda:0".
	Name() string

	// NewVector returns a vector of n zeros.
	NewVector(n int) Vector
	// NewIndex copies ascending distinct coordinates to the device. It may reuse the memory of old,
	// an Index nobody needs any more, or nil.
	NewIndex(coordinates []uint32, old Index) Index

	// Write copies src to dst, from the host to the device. The lengths are equal.
	Write(dst Vector, src []float32)
	// Read copies src to dst, from the device to the host. The lengths are equal.
	Read(dst []float32, src Vector)

	// Combine computes dst = Σ Aₖ·Vₖ in one pass. dst may be one of the Vₖ. Products and sums are
	// rounded one by one, from left to right, each coefficient first rounded to the precision of
	// the device. No term at all makes dst zero.
	Combine(dst Vector, terms ...Term)
	// Gather computes dst[j] = src[idx[j]]. dst has the length of idx, or of src where idx is nil.
	Gather(dst, src Vector, idx Index)
	// AddDiff adds multiples of a difference: for each term V[idx[j]] += A·(own[j] - other[j]). The
	// difference is rounded first, so that both ends of an edge, who hold own and other swapped,
	// add exact negatives.
	AddDiff(own, other Vector, idx Index, to ...Term)
	// AddDiffs adds multiples of a weighted sum of differences, over all coordinates and in one
	// pass: with the product of start, which is zero where it has no vector, and S = start + Σ
	// Aₖ·(own - Vₖ) over others, V += A·S for each term of to. Differences, products and sums are
	// rounded one by one, from left to right. What is read may be among the terms: S is that of
	// before.
	AddDiffs(start Term, own Vector, others []Term, to ...Term)
	// CombineDiffs is Combine(dst.V, base...) and then AddDiffs(start, own, others, dst, to...), in
	// one pass. dst.V may be a vector of base, and no other operand.
	CombineDiffs(dst Term, base []Term, start Term, own Vector, others []Term, to ...Term)
	// ScatterAdd adds all parts to dst, one after the other: dst[Idx[j]] += A·V[j], product and sum
	// rounded one by one. No V may be dst.
	ScatterAdd(dst Vector, parts ...SparseTerm)
	// Dot returns Σ a[k]·b[k], accumulated in float64.
	Dot(a, b Vector) float64

	// Load binds code to this device. The Program has memory of its own while it runs: load once
	// per concurrent user.
	Load(code *Code) (Program, error)
	// Footprint forecasts the bytes that a run of code computes in: its arena, and what the kernels
	// need beside it. Vectors and batches come on top.
	Footprint(code *Code) int
}

// Host is a Device whose vectors lie in the memory of the process: what arrives from elsewhere may
// become a vector without a copy.
type Host interface {
	Device
	// Floats returns the numbers of v where they are.
	Floats(v Vector) []float32
	// Wrap returns a vector of these numbers where they are.
	Wrap(numbers []float32) Vector
}

// Program is Code bound to one Device: it computes one network at one batch size. It is not safe
// for concurrent use.
type Program interface {
	// Code is what was loaded.
	Code() *Code
	// Run executes all kernel calls on one batch, with the parameters params, and writes the
	// gradient to grad. Code without gradient takes a nil grad. The results stand in out, in the
	// order of Code.Results.
	Run(params, grad Vector, b Batch, out []float64) error
	// RunBuffered is Run for code with buffers, which calls read or, by momentum (from 0 to 1),
	// move. Those of its calls that write to buffers have done so when it returns; after an error
	// the buffers hold anything. Code without buffers takes nil.
	RunBuffered(params, grad, buffers Vector, momentum float64, b Batch, out []float64) error
}

// Ahead is a Device that can do its work after the operations that ask for it have returned.
type AsyncDevice interface {
	Device
	// RunsAhead tells whether it does: whether all its Programs are Starters.
	Async() bool
}

// Starter is a Program whose runs need not be waited for.
type AsyncProgram interface {
	Program
	// Start is RunBuffered which returns once it has taken over the batch: the caller may write to
	// it again, start more runs, and go on with vectors as if the run were over, since what is sent
	// to a device is done in order. wait waits until out has the results, and returns the error; it
	// is to be called once. After an error, which may have come in an earlier run, all that was
	// computed since is of no use.
	Start(params, grad, buffers Vector, momentum float64, b Batch, out []float64) (wait func() error)
}
