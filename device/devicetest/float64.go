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

var _ device.Vector = (*Vector64)(nil)

// Len is the number of elements.
func (v *Vector64) Len() int { return len(v.Data) }

// float64Device computes on the host in float64, with the simplest code that implements
// device.Device.
type float64Device struct{}

// NewFloat64 returns a device that computes in float64 on the host, for tests of the mathematics.
// Its vectors are *Vector64. Write widens and Read rounds to float32. Load returns an error.
func NewFloat64() device.Device { return float64Device{} }

func (float64Device) Name() string { return "float64" }

func (float64Device) NewVector(n int) device.Vector { return &Vector64{Data: make([]float64, n)} }

// index64 is an Index of the float64 device.
type index64 []uint32

func (x index64) Len() int { return len(x) }

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

func (float64Device) Combine(dst device.Vector, terms ...device.Term) {
	n := dst.Len()
	sum := make([]float64, n)
	for k, t := range terms {
		for i, v := range data64("Combine", t.V, n) {
			if k == 0 {
				sum[i] = float64(t.A * v)
			} else {
				sum[i] += float64(t.A * v)
			}
		}
	}
	copy(data64("Combine", dst, n), sum)
}

func (d float64Device) CombineAll(all ...device.Combination) {
	for _, c := range all {
		data64("CombineAll", c.Dst, all[0].Dst.Len())
		d.Combine(c.Dst, c.Terms...)
	}
}

func (float64Device) Gather(dst, src device.Vector, idx device.Index) {
	at := coordinates64(idx, src.Len())
	s := data64("Gather", src, src.Len())
	d := data64("Gather", dst, len(at))
	for j, i := range at {
		d[j] = s[i]
	}
}

func (float64Device) AddDiff(own, other device.Vector, idx device.Index, to ...device.Term) {
	n := own.Len()
	p, q := data64("AddDiff", own, n), data64("AddDiff", other, n)
	at := coordinates64(idx, n)
	if len(at) != n {
		panic(fmt.Sprintf("devicetest: AddDiff: index has length %d, want %d", len(at), n))
	}
	diff := make([]float64, n)
	for j := range diff {
		diff[j] = p[j] - q[j]
	}
	for _, t := range to {
		length := t.V.Len()
		if idx == nil {
			length = n
		}
		v := data64("AddDiff", t.V, length)
		for j, i := range at {
			v[i] += float64(t.A * diff[j])
		}
	}
}

func (float64Device) AddDiffs(start device.Term, own device.Vector, others []device.Term, to ...device.Term) {
	p := data64("AddDiffs", own, own.Len())
	sum := make([]float64, len(p))
	if start.V != nil {
		for i, v := range data64("AddDiffs", start.V, len(p)) {
			sum[i] = start.A * v
		}
	}
	for _, o := range others {
		for i, v := range data64("AddDiffs", o.V, len(p)) {
			sum[i] += float64(o.A * (p[i] - v))
		}
	}
	for _, t := range to {
		v := data64("AddDiffs", t.V, len(p))
		for i, s := range sum {
			v[i] += float64(t.A * s)
		}
	}
}

func (d float64Device) CombineDiffs(dst device.Term, base []device.Term, start device.Term, own device.Vector,
	others []device.Term, to ...device.Term) {
	d.Combine(dst.V, base...)
	d.AddDiffs(start, own, others, append([]device.Term{dst}, to...)...)
}

func (float64Device) ScatterAdd(dst device.Vector, parts ...device.SparseTerm) {
	v := data64("ScatterAdd", dst, dst.Len())
	for _, p := range parts {
		at := coordinates64(p.Idx, len(v))
		values := data64("ScatterAdd", p.V, len(at))
		for j, i := range at {
			v[i] += float64(p.A * values[j])
		}
	}
}

func (float64Device) MoveCopy(q, copy, v, w device.Vector, idx device.Index) {
	n := copy.Len()
	at, c, x := coordinates64(idx, n), data64("MoveCopy", copy, n), data64("MoveCopy", v, n)
	moves := data64("MoveCopy", q, len(at))
	for j, i := range at {
		sum := x[i]
		if w != nil {
			sum += data64("MoveCopy", w, n)[i]
		}
		moves[j] = sum - c[i]
		c[i] += moves[j]
	}
}

func (d float64Device) AdamW(a device.Adam, g, m, v, x device.Vector, then ...device.Combination) {
	n := g.Len()
	u, first, second, at := data64("AdamW", g, n), data64("AdamW", m, n), data64("AdamW", v, n), data64("AdamW", x, n)
	for i := range u {
		u[i], first[i], second[i] = adamW(func(v float64) float64 { return v }, a, u[i], first[i], second[i], at[i])
	}
	for _, c := range then {
		data64("AdamW", c.Dst, n)
	}
	d.CombineAll(then...)
}

// adamW is device.Device.AdamW of one number, with each result rounded.
func adamW(round arithmetic, a device.Adam, g, m, v, x float64) (u, mNew, vNew float64) {
	m = round(round(round(a.Beta1)*m) + round(round(a.Rest1)*g))
	v = round(round(round(a.Beta2)*v) + round(round(a.Rest2)*round(g*g)))
	if most := round(a.Most()); v > most {
		v = most
	}
	root := round(round(round(a.Scale2)*round(math.Sqrt(v))) + round(a.Eps))
	u = round(round(round(a.Scale1)*m) / root)
	return round(u + round(round(a.Decay)*x)), m, v
}

func (float64Device) Dot(a, b device.Vector) float64 {
	x, y := data64("Dot", a, a.Len()), data64("Dot", b, a.Len())
	sum := 0.0
	for k := range x {
		sum += float64(x[k] * y[k])
	}
	return sum
}

func (float64Device) Load(code *device.Code) (device.Program, error) {
	return nil, errors.New("devicetest: load " + code.Name +
		": the float64 device computes no networks: load the code on another device, or use Interpret")
}

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
