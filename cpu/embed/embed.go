package embed

import (
	"fmt"
	"sync"

	"fspda/cpu/kernel"
	"fspda/cpu/vec"
	"fspda/device"
)

// Kernels are the embeddings of tokens.
var Kernels = kernel.Table{
	device.Embed:             {Run: forward},
	device.EmbedGrad:         {Run: backward(true)},
	device.EmbedGradAdd:      {Run: backward(true)},
	device.TokenEmbed:        {Run: forward},
	device.TokenEmbedGrad:    {Run: backward(false)},
	device.TokenEmbedGradAdd: {Run: backward(false)},
	device.LastToken:         {Run: lastToken},
	device.EmbedStep:         {Run: step},
}

// tokenAt returns number i of ids, an integer below n.
func tokenAt(ids []float32, i, n int) (int, error) {
	v := ids[i]
	if v >= 0 && v < float32(n) { // false for NaN
		if c := int(v); float32(c) == v {
			return c, nil
		}
	}
	return 0, fmt.Errorf("token of row %d is %v, want an integer from 0 to %d: check that the stream was made with "+
		"the vocabulary of the model", i, v, n-1)
}

// forward: y = tokens[ids], plus positions if there are any.
func forward(o *kernel.Args) error {
	ids, v := o.In[0], o.Dims[1]
	for i := range ids {
		if _, err := tokenAt(ids, i, v); err != nil {
			return err
		}
	}
	o.ParallelRange(len(o.Out[0]), forwardPart)
	return nil
}

func forwardPart(o *kernel.Args, part, of int) {
	ids, c := o.In[0], o.Dims[2]
	from, to := kernel.SplitUnits(part, of, len(ids), 1)
	for i := from; i < to; i++ {
		y, token := o.Out[0][i*c:][:c], o.In[1][int(ids[i])*c:][:c]
		if len(o.In) == 2 {
			copy(y, token)
			continue
		}
		vec.Adds(y, token, o.In[2][i%o.Dims[4]*c:][:c])
	}
}

// step is forward for one window from a position on, which is the last input.
func step(o *kernel.Args) error {
	v, c := o.Dims[1], o.Dims[2]
	at, err := kernel.Position(o.In[3], len(o.In[0]), o.Dims[3])
	if err != nil {
		return err
	}
	for i := range o.In[0] {
		token, err := tokenAt(o.In[0], i, v)
		if err != nil {
			return err
		}
		vec.Adds(o.Out[0][i*c:][:c], o.In[1][token*c:][:c], o.In[2][(at+i)*c:][:c])
	}
	return nil
}

// sorted is the rows of a batch by token: token v has rows[from[v]:from[v+1]], ascending.
type sorted struct {
	from, rows []int32
}

// sort sorts the rows by token.
func (s *sorted) sort(ids []float32, v int) error {
	if cap(s.from) < v+2 {
		s.from = make([]int32, v+2)
	}
	if cap(s.rows) < len(ids) {
		s.rows = make([]int32, len(ids))
	}
	s.from, s.rows = s.from[:v+2], s.rows[:len(ids)]
	clear(s.from)
	for i := range ids {
		token, err := tokenAt(ids, i, v)
		if err != nil {
			return err
		}
		s.from[token+2]++
	}
	for t := range v {
		s.from[t+2] += s.from[t+1]
	}
	for i, id := range ids {
		at := &s.from[int(id)+1]
		s.rows[*at] = int32(i)
		*at++
	}
	return nil
}

// backward: dtokens = sums of the rows of dy by token, plus base if there is one, dpositions = sums
// by position.
func backward(positions bool) func(o *kernel.Args) error {
	return func(o *kernel.Args) error {
		g := gradients.Get().(*gradient)
		defer gradients.Put(g)
		if err := g.sort(o.In[0], o.Dims[1]); err != nil {
			return err
		}
		g.Args, g.c, g.positions, g.base = o, o.Dims[2], positions, nil
		if len(o.In) == 3 {
			g.base = o.In[2]
		}
		if parts := o.Threads(); parts > 1 && len(o.In[1]) >= leastGrad {
			o.Parallel(finer*parts, g.part)
		} else {
			g.part(o, 0, 1)
		}
		g.Args, g.base = nil, nil // so that the pool keeps no operand alive
		return nil
	}
}

// leastGrad is how many numbers of dy are worth another goroutine, and finer into how many parts
// each divides its share, since some tokens are much more frequent than others.
const (
	leastGrad = 32 << 10
	finer     = 4
)

type gradient struct {
	*kernel.Args
	sorted
	c         int
	base      []float32
	positions bool
}

// gradients holds gradient for reuse of the sorted rows.
var gradients = sync.Pool{New: func() any { return new(gradient) }}

// part computes some rows of both gradients.
func (g *gradient) part(o *kernel.Args, part, of int) {
	from, to := kernel.SplitUnits(part, of, o.Dims[1], 1)
	for token := from; token < to; token++ {
		g.token(token)
	}
	if g.positions {
		from, to = kernel.SplitUnits(part, of, o.Dims[3], 1)
		for at := from; at < to; at++ {
			g.position(at)
		}
	}
}

// token computes the gradient of a token's row.
func (g *gradient) token(v int) {
	out := g.Out[0][v*g.c:][:g.c]
	vec.RowSums(out, g.In[1], g.rows[g.from[v]:g.from[v+1]], g.c)
	if g.base != nil {
		vec.Adds(out, out, g.base[v*g.c:][:g.c])
	}
}

// position computes the gradient of a position's row.
func (g *gradient) position(at int) {
	m, t, out := g.Dims[0], g.Dims[4], g.Out[1][at*g.c:][:g.c]
	if at >= t {
		clear(out)
		return
	}
	vec.ColumnSums(out, g.In[1][at*g.c:], (m-at+t-1)/t, t*g.c)
}

// lastToken copies the last row of each window.
func lastToken(o *kernel.Args) error {
	b, t, c := o.Dims[0], o.Dims[1], o.Dims[2]
	for i := range b {
		copy(o.Out[0][i*c:][:c], o.In[0][((i+1)*t-1)*c:])
	}
	return nil
}
