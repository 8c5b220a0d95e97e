package device

import (
	"fmt"
	"slices"
)

// Space is one of the memories that hold the operands of Code.
type Space uint8

const (
	Params Space = iota // flat parameter vector, an argument of Run
	Grads               // flat gradient vector, an argument of Run; same offsets as Params
	Arena               // intermediate values: planned by the compiler, owned by the Program
	Input               // examples of the batch, N×features
	Labels              // class indices of the batch, N×labels, as float32 (exact below 2^24); see Code.Mixed
	// flat buffer vector, an argument of RunBuffered: running means and variances
	Buffers
	Momentum // one number, an argument of RunBuffered: the step of the moving averages
	Key      // the key of the batch's random numbers: 4 numbers of 16 bits, see Batch.KeyNumbers
)

func (s Space) String() string {
	return [...]string{"params", "grads", "arena", "input", "labels", "buffers", "momentum", "key"}[s]
}

// Ref is an operand: Len numbers of a Space, starting at offset Off.
type Ref struct {
	Space    Space
	Off, Len int
}

func (r Ref) String() string { return fmt.Sprintf("%s[%d:%d]", r.Space, r.Off, r.Off+r.Len) }

// Overlaps reports whether two operands share numbers.
func (r Ref) Overlaps(o Ref) bool {
	return r.Space == o.Space && r.Off < o.Off+o.Len && o.Off < r.Off+r.Len
}

// OverlapsAny reports whether an operand shares numbers with one of the others.
func (r Ref) OverlapsAny(others []Ref) bool { return slices.ContainsFunc(others, r.Overlaps) }

// Call is one kernel call. The documentation of the Kernel defines In, Out, Dims and Attr.
type Call struct {
	Kernel Kernel
	In     []Ref
	Out    []Ref
	Dims   []int
	Attr   float64
	Name   string // name of the layer, for messages and traces
}

// Result names a number that Run returns: element Ref.Off of the arena after the last call.
type Result struct {
	Name string
	Ref  Ref
}

// Value is an output that a call writes to the arena. It exists until its memory is overwritten.
type Value struct {
	Ref       Ref // its address
	InPlaceOf int // the input of the same call whose memory it overwrites; -1: none
}

// Dataflow lists the values of Code and their uses, so that a device can give them other addresses.
type Dataflow struct {
	Values  []Value
	In, Out [][]int // values of the operands of each call; -1: an operand outside of the arena
	Results []int   // the value that holds each result
}

// Code is a network at one batch size, compiled to a flat list of kernel calls. It is immutable and
// may be loaded any number of times, on any number of devices. The compiler is fspda/model.
type Code struct {
	Name     string
	Batch    int // examples
	Features int // numbers per example
	Labels   int // labels per example: more than one where examples are windows of tokens; 0 means 1
	// Mixed gives each label three numbers of Space Labels: the class, a second class, and the weight of
	// the first. Such code has the kernel SoftmaxCrossEntropyMixed, and no other that reads labels.
	Mixed    bool
	Dim      int // length of the parameter and gradient vectors
	Arena    int // length of the arena
	Buffers  int // length of the buffer vector; 0 if no call uses buffers
	Gradient bool
	Calls    []Call
	Results  []Result
	Dataflow Dataflow // empty in code written by hand: see fspda/device/plan
	FLOPs    float64  // floating-point operations of the matrix kernels in one Run
}

func (c *Code) Targets() int { return c.Batch * max(1, c.Labels) }

// LabelNumbers is the length of Space Labels.
func (c *Code) LabelNumbers() int {
	if c.Mixed {
		return mixNumbers * c.Targets()
	}
	return c.Targets()
}

// Vocabulary returns the smallest number of tokens or classes that a call expects of the tokens of
// the batch, be they features or labels, or 0 if none does.
func (c *Code) Vocabulary() int {
	least := c.Classes()
	for i := range c.Calls {
		switch call := &c.Calls[i]; call.Kernel {
		case Embed, EmbedGrad, EmbedGradAdd, TokenEmbed, TokenEmbedGrad, TokenEmbedGradAdd,
			EmbedStep:
			if n := call.Dims[1]; call.In[0].Space == Input && (least == 0 || n < least) {
				least = n
			}
		}
	}
	return least
}

// Classes returns the smallest number of classes that a call expects of the labels of the batch, or
// 0 if none does.
func (c *Code) Classes() int {
	least := 0
	for i := range c.Calls {
		switch call := &c.Calls[i]; call.Kernel {
		case SoftmaxCrossEntropy, SoftmaxCrossEntropyMixed, Score:
			if n := call.Dims[1]; call.In[1].Space == Labels && (least == 0 || n < least) {
				least = n
			}
		}
	}
	return least
}
