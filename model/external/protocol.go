package external

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"fspda/device"
	"fspda/model"
)

// Version is the version of the messages.
const Version = 1

// request is a message to a client: one line of JSON.
type request struct {
	Do string `json:"do"` // hello, data, model, init, grad, score, observe or predict

	Protocol int      `json:"protocol,omitempty"` // hello
	Example  *example `json:"example,omitempty"`  // model
	Seed     *uint64  `json:"seed,omitempty"`     // init

	X        *array   `json:"x,omitempty"`        // the parameters
	G        *array   `json:"g,omitempty"`        // the gradient, which the client writes
	Buffers  *array   `json:"buffers,omitempty"`  // the buffers, which init, grad and observe write
	Batch    *batch   `json:"batch,omitempty"`    // the examples
	Out      *array   `json:"out,omitempty"`      // predict: the logits, which the client writes
	Momentum *float64 `json:"momentum,omitempty"` // observe
}

// example describes the examples of a data set.
type example struct {
	Shape   []int `json:"shape"` // [28,28], [H,W,C], or [T] tokens
	Classes int   `json:"classes"`
	Tokens  bool  `json:"tokens,omitempty"`
	Rows    bool  `json:"rows,omitempty"` // the client loads the examples of each batch
}

// array is a place in the shared memory.
type array struct {
	At    int64  `json:"at"`   // offset in bytes
	Type  string `json:"type"` // float32 or int32
	Shape []int  `json:"shape"`
}

// batch is a minibatch. Its examples are X, or Rows of a set of the client.
type batch struct {
	X     *array `json:"x,omitempty"` // float32, or int32 tokens
	Y     *array `json:"y"`           // int32: the classes
	Rows  *array `json:"rows,omitempty"`
	Split string `json:"split,omitempty"` // The split of Rows: train or test.
	// Key seeds the random numbers of the batch, such as the masks of dropout; 0: there are none.
	Key uint64 `json:"key,omitempty"`
}

// answer is a message of a client: one line of JSON.
type answer struct {
	Error     string `json:"error"`     // not empty: the request failed
	Traceback string `json:"traceback"` // where it failed

	Protocol int      `json:"protocol"` // hello
	Train    *labels  `json:"train"`    // data
	Test     *labels  `json:"test"`     // data
	Classes  int      `json:"classes"`  // data; 0: one more than the largest label
	Names    []string `json:"class_names"`
	facts             // model

	// null stands for a number that is not finite
	Loss  *float64 `json:"loss"` // grad: the mean loss; score: the sum of the losses
	Hits  float64  `json:"hits"` // score
	Hits5 float64  `json:"hits5"`
}

type facts struct {
	Name       string                 `json:"name"`
	Parameters []model.ExternalTensor `json:"parameters"`
	Buffers    []model.ExternalTensor `json:"buffers"`
	Tokens     bool                   `json:"tokens"`
}

// question is a request model, with the answer that it must have.
type question struct {
	request
	facts facts
}

// equal reports whether two answers describe the same tensors.
func (f facts) equal(o facts) bool {
	same := func(a, b []model.ExternalTensor) bool {
		return slices.EqualFunc(a, b, func(x, y model.ExternalTensor) bool {
			return x.Name == y.Name && slices.Equal(x.Shape, y.Shape)
		})
	}
	return f.Tokens == o.Tokens && same(f.Parameters, o.Parameters) && same(f.Buffers, o.Buffers)
}

// labels are the classes of the examples of a split.
type labels struct {
	Labels []int32 `json:"labels"`
}

// loss returns the loss of an answer.
func (a *answer) loss() float64 {
	if a.Loss == nil {
		return math.NaN()
	}
	return *a.Loss
}

func (e example) features() int {
	n := 1
	for _, d := range e.Shape {
		n *= d
	}
	return n
}

// encode returns the line of a request.
func (r request) encode() []byte {
	text, err := json.Marshal(r)
	if err != nil {
		panic(fmt.Sprintf("external: %v", err)) // numbers and names
	}
	return append(text, '\n')
}

// numbers returns how many numbers of four bytes a batch takes.
func (e example) numbers(b device.Batch) int {
	if e.Rows {
		return b.N() + b.Targets()
	}
	return b.N()*e.features() + b.Targets()
}

// stage copies a batch to the shared memory.
func (e example) stage(b device.Batch, test *device.CacheKey, to *stage) *batch {
	n := b.N()
	m := &batch{Key: b.Key}
	labels := []int{n}
	if b.Length > 0 {
		labels = append(labels, b.Length)
	}
	switch {
	case e.Rows:
		rows, at := to.ints(n)
		copy(rows, b.Rows)
		m.Rows, m.Split = at, "train"
		if b.CacheKey == test {
			m.Split = "test"
		}
	case b.Tokens != nil:
		tokens, at := to.ints(n, b.Length)
		for i, from := range b.At {
			for k, token := range b.Tokens[from:][:b.Length] {
				tokens[i*b.Length+k] = int32(token)
			}
		}
		m.X = at
	default:
		numbers, at := to.floats(append([]int{n}, e.Shape...)...)
		if x := b.Numbers(numbers, e.features()); len(x) > 0 && &x[0] != &numbers[0] {
			copy(numbers, x)
		}
		m.X = at
	}
	classes, at := to.ints(labels...)
	copy(classes, b.Y)
	for i, from := range b.At {
		for k, token := range b.Tokens[from+1:][:b.Length] {
			classes[i*b.Length+k] = int32(token)
		}
	}
	m.Y = at
	return m
}
