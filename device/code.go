package device

import "fmt"

// Space is one of the memories that the operands of Code live in.
type Space uint8

const (
	Params   Space = iota // the flat parameter vector, given at Run
	Grads                 // the flat gradient vector, given at Run: same offsets as Params
	Arena                 // intermediate values: planned, owned by the Program
	Input                 // the batch's examples, N×features
	Labels                // the batch's class indices, as float32 (exact below 2^24)
	Buffers               // the flat buffer vector, given at RunBuffered: running means and variances
	Momentum              // one number, given at RunBuffered: how far the buffers move
)

func (s Space) String() string {
	return [...]string{"params", "grads", "arena", "input", "labels", "buffers", "momentum"}[s]
}

// Ref is an operand: Len numbers from Off on in a Space.
type Ref struct {
	Space    Space
	Off, Len int
}

func (r Ref) String() string { return fmt.Sprintf("%s[%d:%d]", r.Space, r.Off, r.Off+r.Len) }

// Call is one kernel call. What In, Out, Dims and Attr hold is said by the Kernel.
type Call struct {
	Kernel Kernel
	In     []Ref
	Out    []Ref
	Dims   []int
	Attr   float64
	Name   string // the layer it comes from, for people
}

// Result names a number that Run returns: element Ref.Off of the arena after the last call.
type Result struct {
	Name string
	Ref  Ref
}

// Code is a network at one batch size as a flat list of kernel calls. It is immutable once made and
// may be loaded any number of times, on any number of devices. See fspda/model for its compiler.
type Code struct {
	Name     string
	Batch    int // examples
	Features int // numbers per example
	Dim      int // length of the parameter and gradient vectors
	Arena    int // length of the arena
	Buffers  int // length of the buffer vector; 0 where no call has one
	Gradient bool
	Calls    []Call
	Results  []Result
	FLOPs    float64 // floating-point operations of the matrix kernels of one Run
}
