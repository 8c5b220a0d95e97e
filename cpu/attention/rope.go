package attention

import (
	"math"
	"math/bits"
	"sync"

	"fspda/cpu/kernel"
)

// ropeTable holds the cosines and sines of the angles t·θ^(−2j/h), by position and pair.
type ropeTable struct{ cos, sin []float32 }

// ropeKey selects a table.
type ropeKey struct {
	tokens, width int
	theta         float64
}

var ropeTables sync.Map // *ropeTable by ropeKey

// tableOf returns the table of the first positions, computed in float64 and rounded once.
func tableOf(k ropeKey) *ropeTable {
	if t, ok := ropeTables.Load(k); ok {
		return t.(*ropeTable)
	}
	pairs := k.width / 2
	t := &ropeTable{make([]float32, k.tokens*pairs), make([]float32, k.tokens*pairs)}
	for j := range pairs {
		frequency := math.Pow(k.theta, -2*float64(j)/float64(k.width))
		for i := range k.tokens {
			sin, cos := math.Sincos(float64(i) * frequency)
			t.cos[i*pairs+j], t.sin[i*pairs+j] = float32(cos), float32(sin)
		}
	}
	found, _ := ropeTables.LoadOrStore(k, t)
	return found.(*ropeTable)
}

// rope turns queries and keys by the angles of their positions, times sign, and copies the values.
// Products and sums are rounded one by one.
func rope(sign float32) func(o *kernel.Args) error {
	part := func(o *kernel.Args, part, of int) {
		s := shapeOf(o.Dims)
		t := tableOf(ropeKey{s.tokens, s.width, o.Attr})
		from, to := kernel.SplitUnits(part, of, s.windows*s.tokens, 1)
		for r := from; r < to; r++ {
			at, pairs := r%s.tokens, s.width/2
			cos, sin := t.cos[at*pairs:][:pairs], t.sin[at*pairs:][:pairs]
			x, y := o.In[0][r*3*s.row():][:3*s.row()], o.Out[0][r*3*s.row():][:3*s.row()]
			for h := range 2 * s.heads {
				turn(y[h*s.width:][:s.width], x[h*s.width:][:s.width], cos, sin, sign)
			}
			copy(y[2*s.row():], x[2*s.row():])
		}
	}
	return func(o *kernel.Args) error {
		o.ParallelRange(len(o.Out[0]), part)
		return nil
	}
}

// ropeStep is rope for one window from a position on.
func ropeStep(o *kernel.Args) error {
	s := shape{1, o.Dims[0], o.Dims[1], o.Dims[2]}
	at, err := kernel.Position(o.In[1], s.tokens, 1<<24)
	if err != nil {
		return err
	}
	// tables for a power of two of positions, so that there are few
	t, pairs := tableOf(ropeKey{1 << bits.Len(uint(at+s.tokens-1)), s.width, o.Attr}), s.width/2
	for r := range s.tokens {
		cos, sin := t.cos[(at+r)*pairs:][:pairs], t.sin[(at+r)*pairs:][:pairs]
		x, y := o.In[0][r*3*s.row():][:3*s.row()], o.Out[0][r*3*s.row():][:3*s.row()]
		for h := range 2 * s.heads {
			turn(y[h*s.width:][:s.width], x[h*s.width:][:s.width], cos, sin, 1)
		}
		copy(y[2*s.row():], x[2*s.row():])
	}
	return nil
}

// turn turns the pairs j and j+h/2 of a head.
func turn(y, x, cos, sin []float32, sign float32) {
	pairs := len(cos)
	for j, c := range cos {
		a, b, s := x[j], x[j+pairs], sign*sin[j]
		y[j], y[j+pairs] = float32(a*c)-float32(b*s), float32(b*c)+float32(a*s)
	}
}
