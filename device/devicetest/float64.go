package devicetest

import (
	"errors"
	"fmt"
	"math"

	"fspda/device"
)

// Vector64 is a vector of the float64 device. Tests may read and write Data directly.
type Vector64 struct {
	Data []float64
}

func (v *Vector64) Len() int { return len(v.Data) }

// float64Device computes on the host in float64, and rounds each result by round. Its loops over
// the vectors are the definition of the operations of a device.
type float64Device struct{ round arithmetic }

// NewFloat64 returns a device that computes in float64 on the host, for tests of the mathematics.
// Its vectors are *Vector64. Write widens and Read rounds to float32. Load returns an error.
func NewFloat64() device.Device { return float64Device{exact} }

// exact is arithmetic without rounding.
func exact(v float64) float64 { return v }

func (float64Device) Name() string { return "float64" }

func (float64Device) NewVector(n int) device.Vector { return &Vector64{Data: make([]float64, n)} }

// index64 is an Index of the float64 device.
type index64 []uint32

func (x index64) Len() int { return len(x) }

func (x index64) Bound() int {
	if len(x) == 0 {
		return 0
	}
	return int(x[len(x)-1]) + 1
}

func (float64Device) NewIndex(coordinates []uint32, _ device.Index) device.Index {
	for j := 1; j < len(coordinates); j++ {
		if coordinates[j-1] >= coordinates[j] {
			panic(fmt.Sprintf("devicetest: NewIndex: coordinates are not ascending at %d", j))
		}
	}
	return append(index64{}, coordinates...)
}

func (float64Device) Write(dst device.Vector, src []float32) {
	d := data64("Write", dst, len(src))
	for i, v := range src {
		d[i] = float64(v)
	}
}

func (float64Device) Read(dst []float32, src device.Vector) {
	for i, v := range data64("Read", src, len(dst)) {
		dst[i] = float32(v)
	}
}

func (d float64Device) Do(ops ...device.Op) {
	for i := range ops {
		ops[i].Check()
	}
	for i := range ops {
		d.do(&ops[i])
	}
}

func (d float64Device) do(op *device.Op) {
	if op.Only != nil {
		d.within(op)
		return
	}
	switch op.Kind {
	case device.KindCombine:
		d.combine(op)
	case device.KindGather:
		d.gather(op)
	case device.KindAddDiff:
		d.addDiff(op)
	case device.KindAddDiffs:
		d.addDiffs(op)
	case device.KindScatterAdd:
		d.scatterAdd(op)
	case device.KindMoveCopy:
		d.moveCopy(op)
	case device.KindAdamW:
		d.adamW(op)
	case device.KindDot:
		d.dot(op)
	case device.KindMultiply:
		d.multiply(op)
	case device.KindOrthogonalize:
		d.orthogonalize(op)
	default:
		panic(fmt.Sprintf("devicetest: operation %d", op.Kind))
	}
}

// within computes an operation on all coordinates, and restores those outside of its ranges.
func (d float64Device) within(op *device.Op) {
	whole := *op
	whole.Only = nil
	var before [len(op.Out)][]float64
	for i, v := range op.Out {
		if v != nil {
			before[i] = append([]float64{}, numbers64(v)...)
		}
	}
	d.do(&whole)
	for i, old := range before {
		if old == nil {
			continue
		}
		at := 0
		for _, r := range op.Only {
			copy(numbers64(op.Out[i])[at:r.From], old[at:r.From])
			at = r.To
		}
		copy(numbers64(op.Out[i])[at:], old[at:])
	}
}

// times returns a·v, each rounded.
func (d float64Device) times(a, v float64) float64 { return d.round(d.round(a) * v) }

func (d float64Device) combine(op *device.Op) {
	dst := numbers64(op.Out[0])
	var few [4][]float64
	terms := few[:0]
	for _, t := range op.Terms {
		terms = append(terms, numbers64(t.V))
	}
	for i := range dst {
		sum := 0.0
		for k, v := range terms {
			if p := d.times(op.Terms[k].A, v[i]); k == 0 {
				sum = p
			} else {
				sum = d.round(sum + p)
			}
		}
		dst[i] = sum
	}
}

func (float64Device) gather(op *device.Op) {
	dst, src := numbers64(op.Out[0]), numbers64(op.In[0])
	for j, i := range coordinates64(op.Idx, len(src)) {
		dst[j] = src[i]
	}
}

func (d float64Device) addDiff(op *device.Op) {
	own, other := numbers64(op.In[0]), numbers64(op.In[1])
	for j, i := range coordinates64(op.Idx, len(own)) {
		diff := d.round(own[j] - other[j])
		for _, t := range op.To {
			v := numbers64(t.V)
			v[i] = d.round(v[i] + d.times(t.A, diff))
		}
	}
}

func (d float64Device) addDiffs(op *device.Op) {
	own := numbers64(op.In[0])
	for i := range own {
		sum := 0.0
		if op.Start.V != nil {
			sum = d.times(op.Start.A, numbers64(op.Start.V)[i])
		}
		for _, t := range op.Terms {
			sum = d.round(sum + d.times(t.A, d.round(own[i]-numbers64(t.V)[i])))
		}
		for _, t := range op.To {
			v := numbers64(t.V)
			v[i] = d.round(v[i] + d.times(t.A, sum))
		}
	}
}

func (d float64Device) scatterAdd(op *device.Op) {
	dst := numbers64(op.Out[0])
	for _, p := range op.Parts {
		for j, i := range coordinates64(p.Idx, len(dst)) {
			dst[i] = d.round(dst[i] + d.times(p.A, numbers64(p.V)[j]))
		}
	}
}

func (d float64Device) moveCopy(op *device.Op) {
	moves, to, v := numbers64(op.Out[0]), numbers64(op.Out[1]), numbers64(op.In[0])
	for j, i := range coordinates64(op.Idx, len(to)) {
		sum := v[i]
		if op.In[1] != nil {
			sum = d.round(sum + numbers64(op.In[1])[i])
		}
		moves[j] = d.round(sum - to[i])
		to[i] = d.round(to[i] + moves[j])
	}
}

func (d float64Device) adamW(op *device.Op) {
	a, g, m, v, x := op.Adam, numbers64(op.Out[0]), numbers64(op.Out[1]), numbers64(op.Out[2]), numbers64(op.In[0])
	for i := range g {
		m[i] = d.round(d.times(a.Beta1, m[i]) + d.times(a.Rest1, g[i]))
		v[i] = d.round(d.times(a.Beta2, v[i]) + d.times(a.Rest2, d.round(g[i]*g[i])))
		if most := d.round(a.Most()); v[i] > most {
			v[i] = most
		}
		root := d.round(d.times(a.Scale2, d.round(math.Sqrt(v[i]))) + d.round(a.Eps))
		g[i] = d.round(d.round(d.times(a.Scale1, m[i])/root) + d.times(a.Decay, x[i]))
	}
}

// dot adds in any order: the order is not part of the definition.
func (d float64Device) dot(op *device.Op) {
	*op.Sum = 0
	for k, v := range numbers64(op.In[0]) {
		*op.Sum += v * numbers64(op.In[1])[k]
	}
}

func (d float64Device) multiply(op *device.Op) {
	p, c, a, b := op.Product, numbers64(op.Out[0]), numbers64(op.In[0]), numbers64(op.In[1])
	at := func(v []float64, w device.View, i, j int) *float64 { return &v[w.Offset+i*w.Down+j*w.Right] }
	for i := range p.C.Rows {
		for j := range p.C.Cols {
			sum := 0.0
			if p.Beta != 0 {
				sum = d.times(p.Beta, *at(c, p.C, i, j))
			}
			for k := range p.A.Cols {
				scaled := d.round(p.Alpha * *at(a, p.A, i, k))
				sum = d.round(sum + d.round(scaled**at(b, p.B, k, j)))
			}
			*at(c, p.C, i, j) = sum
		}
	}
}

func (float64Device) Load(code *device.Code) (device.Program, error) {
	return nil, errors.New("devicetest: load " + code.Name +
		": the float64 device computes no networks: load the code on another device, or use Interpret")
}

// Features says nothing: the device has operations on vectors only.
func (float64Device) Features() device.Features { return device.Features{} }

func (float64Device) Err() error { return nil }

// Footprint is 0: the device loads no code.
func (float64Device) Footprint(*device.Code) int { return 0 }

// data64 returns the n numbers of v; op names the operation for messages.
func data64(op string, v device.Vector, n int) []float64 {
	x, ok := v.(*Vector64)
	if !ok {
		panic(fmt.Sprintf("devicetest: %s: %T is not a vector of this device, want *devicetest.Vector64", op, v))
	}
	if len(x.Data) != n {
		panic(fmt.Sprintf("devicetest: %s: vector has length %d, want %d", op, len(x.Data), n))
	}
	return x.Data
}

// numbers64 returns the numbers of v, for an operation on vectors.
func numbers64(v device.Vector) []float64 { return data64("Do", v, v.Len()) }

// coordinates64 lists the coordinates of idx; nil means all n.
func coordinates64(idx device.Index, n int) []uint32 {
	if idx != nil {
		x, ok := idx.(index64)
		if !ok {
			panic(fmt.Sprintf("devicetest: %T is not an index of this device", idx))
		}
		return x
	}
	all := make([]uint32, n)
	for i := range all {
		all[i] = uint32(i)
	}
	return all
}

// orthogonalize computes an Orthogonalize without rounding.
func (float64Device) orthogonalize(op *device.Op) {
	v := numbers64(op.Out[0])
	for _, m := range op.Matrices {
		x, sum := v[m.Offset:][:m.Len()], 0.0
		for _, a := range x {
			sum += a * a
		}
		for i := range x {
			x[i] /= max(math.Sqrt(sum), device.OrthogonalMinNorm)
		}
		at := device.View{Rows: m.Rows, Cols: m.Cols, Down: m.Cols, Right: 1}
		if m.Rows > m.Cols {
			at = at.T()
		}
		for range device.OrthogonalSteps {
			newtonSchulz(x, at)
		}
		for i := range x {
			x[i] *= m.Scale
		}
	}
}

// newtonSchulz replaces X, which is numbers of v with no more rows than columns, by A·X + (B·P +
// C·P·P)·X for P = X·Xᵀ.
func newtonSchulz(v []float64, w device.View) {
	x := func(i, j int) *float64 { return &v[i*w.Down+j*w.Right] }
	side := w.Rows
	p, q := make([]float64, side*side), make([]float64, side*side)
	for i := range side {
		for j := range side {
			for k := range w.Cols {
				p[i*side+j] += *x(i, k) * *x(j, k)
			}
		}
	}
	for i := range side {
		for j := range side {
			q[i*side+j] = device.OrthogonalB * p[i*side+j]
			for k := range side {
				q[i*side+j] += device.OrthogonalC * p[i*side+k] * p[k*side+j]
			}
		}
	}
	column := make([]float64, side)
	for j := range w.Cols {
		for i := range side {
			column[i] = device.OrthogonalA * *x(i, j)
			for k := range side {
				column[i] += q[i*side+k] * *x(k, j)
			}
		}
		for i, s := range column {
			*x(i, j) = s
		}
	}
}
