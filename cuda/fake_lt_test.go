package cuda

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"unsafe"

	"fspda/cuda/cublas"
	"fspda/cuda/driver"
	"fspda/cuda/kernels"
	"fspda/internal/testing/fakegpu"
)

// fakeLt is cuBLASLt as loops, with the argument checks of the real one. It has no algorithm for
// results of five columns, so that the kernels that replace it are tested too.
type fakeLt struct {
	m         *fakegpu.Machine
	behaviour ltBehaviour
	next      cublas.Ptr
	descs     map[cublas.Ptr]map[int32]uint64 // attributes
	prefs     map[cublas.Ptr]map[int32]uint64
	layouts   map[cublas.Ptr]ltLayout
}

// ltBehaviour is behaviour of cuBLASLt that NVIDIA does not document.
type ltBehaviour struct {
	keepsNaN bool // ReLU keeps NaN; else it makes 0 of it, as some versions do
	oddBits  bool // masks begin with the highest bit of a byte
	noGELU   bool // it has no algorithm for products with GELU
	sigmoid  bool // GELU is x·σ(1.702·x)
	oneBatch bool // an algorithm is not for other numbers of matrices
}

// bit returns the byte and the bit of number at of a mask.
func (m ltBehaviour) bit(at int) (at8, mask int) {
	if m.oddBits {
		return at / 8, 1 << (7 - at%8)
	}
	return at / 8, 1 << (at % 8)
}

type ltLayout struct {
	of            cublas.Type
	rows, columns int
	ld            int
	batch, stride int // attributes 5 and 6
}

// end returns the numbers from the first one of a batch to its end.
func (l ltLayout) end() int { return (l.batch-1)*l.stride + l.rows*l.columns }

// matrix returns a matrix of the batch, of which x is all.
func (l ltLayout) matrix(x matrix, i int) []float32 { return x.v[i*l.stride:][:l.rows*l.columns] }

// descSizes and prefSizes are the sizes in bytes of the attributes that are known.
var descSizes, prefSizes = map[int32]uintptr{3: 4, 4: 4, 7: 4, 8: 8, 11: 8, 12: 8}, map[int32]uintptr{1: 8, 3: 4, 5: 4,
	6: 4, 7: 4, 8: 4}

func newFakeLt(m *fakegpu.Machine, of ltBehaviour) *cublas.LtAPI {
	l := &fakeLt{m: m, behaviour: of, descs: map[cublas.Ptr]map[int32]uint64{},
		prefs: map[cublas.Ptr]map[int32]uint64{}, layouts: map[cublas.Ptr]ltLayout{}}
	make := func(out *cublas.Ptr) cublas.Status { l.next++; *out = l.next; return 0 }
	set := func(of map[cublas.Ptr]map[int32]uint64, sizes map[int32]uintptr) func(cublas.Ptr, int32, unsafe.Pointer,
		uintptr) cublas.Status {
		return func(d cublas.Ptr, at int32, v unsafe.Pointer, n uintptr) cublas.Status {
			if of[d] == nil || sizes[at] != n {
				return 7
			}
			if of[d][at] = uint64(*(*uint32)(v)); n == 8 {
				of[d][at] = *(*uint64)(v)
			}
			return 0
		}
	}
	return &cublas.LtAPI{
		Create: make, Destroy: func(cublas.Ptr) cublas.Status { return 0 },
		CreatePref: func(out *cublas.Ptr) cublas.Status {
			make(out)
			l.prefs[*out] = map[int32]uint64{}
			return 0
		},
		DestroyPref: func(p cublas.Ptr) cublas.Status { delete(l.prefs, p); return 0 },
		SetPref:     set(l.prefs, prefSizes),
		CreateDesc: func(out *cublas.Ptr, _ cublas.Compute, _ cublas.Type) cublas.Status {
			make(out)
			l.descs[*out] = map[int32]uint64{}
			return 0
		},
		SetDesc:     set(l.descs, descSizes),
		DestroyDesc: func(d cublas.Ptr) cublas.Status { delete(l.descs, d); return 0 },
		CreateLayout: func(out *cublas.Ptr, of cublas.Type, rows, columns uint64, ld int64) cublas.Status {
			make(out)
			l.layouts[*out] = ltLayout{of, int(rows), int(columns), int(ld), 1, 0}
			return 0
		},
		SetLayout: func(p cublas.Ptr, at int32, v unsafe.Pointer, n uintptr) cublas.Status {
			x, there := l.layouts[p]
			switch {
			case there && at == 5 && n == 4:
				x.batch = int(*(*int32)(v))
			case there && at == 6 && n == 8:
				x.stride = int(*(*int64)(v))
			default:
				return 7
			}
			l.layouts[p] = x
			return 0
		},
		DestroyLayout: func(d cublas.Ptr) cublas.Status { delete(l.layouts, d); return 0 },
		Heuristic: func(_, desc, _, _, c, _, pref cublas.Ptr, _ int32, all *cublas.Heuristic,
			got *int32) cublas.Status {
			d, p, rows := l.descs[desc], l.prefs[pref], l.layouts[c].rows
			switch e := cublas.Epilogue(d[7]); {
			case (e == cublas.EpilogueReLUMaskBias || e == cublas.EpilogueReLUGrad) && (d[11] == 0 || d[12]%128 != 0 ||
				d[12] < uint64(rows)):
				return 7
			case hasGELU(e) && (d[11] == 0 || d[12]%8 != 0 || d[12] < uint64(rows)):
				return 7
			case hasBias(e) && d[8] == 0:
				return 7
			case rows == 5 || hasGELU(e) && of.noGELU:
				return 15
			}
			*got, *all = 1, cublas.Heuristic{Algo: cublas.Algo{7, p[5], p[6], p[7], lowestBit(d[8]), lowestBit(d[11])}}
			return 0
		},
		CheckAlgo: func(_, _, _, _, _, _ cublas.Ptr, algo *cublas.Algo, found *cublas.Heuristic) cublas.Status {
			if *found = (cublas.Heuristic{Algo: *algo}); algo[0] != 7 || of.oneBatch {
				return 15
			}
			return 0
		},
		Matmul: l.multiply,
	}
}

func hasBias(e cublas.Epilogue) bool {
	return e != 1 && e != cublas.EpilogueReLUGrad && e != cublas.EpilogueGELU && e != cublas.EpilogueGELUGrad
}

func hasGELU(e cublas.Epilogue) bool {
	return e == cublas.EpilogueGELU || e == cublas.EpilogueGELUBias || e == cublas.EpilogueGELUGrad
}

// gelu returns GELU of a number, and its slope.
func (m ltBehaviour) gelu(v float64) (y, slope float64) {
	if m.sigmoid {
		s := 1 / (1 + math.Exp(-1.702*v))
		return v * s, s + v*s*(1-s)*1.702
	}
	t := math.Tanh(math.Sqrt(2/math.Pi) * (v + 0.044715*v*v*v))
	return v * (1 + t) / 2, (1+t)/2 + v/2*(1-t*t)*math.Sqrt(2/math.Pi)*(1+3*0.044715*v*v)
}

// lowestBit returns the lowest bit of an address, its alignment.
func lowestBit(at uint64) uint64 { return max(at&-at, 1) }

// multiply computes D = alpha·op(A)·op(B) + beta·C by columns, and the epilogue, for each matrix of
// a batch.
func (l *fakeLt) multiply(_, desc cublas.Ptr, alpha *float32, pa driver.Pointer, la cublas.Ptr, pb driver.Pointer,
	lb cublas.Ptr, beta *float32, pc driver.Pointer, _ cublas.Ptr,
	pd driver.Pointer, ld cublas.Ptr, algo *cublas.Algo, _ driver.Pointer, _ uintptr, s driver.Stream) cublas.Status {
	d, a, b, c := maps.Clone(l.descs[desc]), l.layouts[la], l.layouts[lb], l.layouts[ld]
	k := a.columns
	if d[3] == 1 {
		k = a.rows
	}
	aligned := uint64(pa)%algo[1] == 0 && uint64(pb)%algo[2] == 0 && uint64(pd)%algo[3] == 0 &&
		d[8]%min(algo[4], 256) == 0 && d[11]%min(algo[5], 256) == 0
	by, add := float64(*alpha), float64(*beta)
	if algo[0] != 7 || a.of != b.of || !aligned || a.batch != c.batch || b.batch != c.batch ||
		add != 0 && uint64(pc)%algo[3] != 0 {
		return 7
	}
	element := map[cublas.Type]kernels.Element{cublas.Float32: kernels.F32, cublas.Float16: kernels.F16,
		cublas.BFloat16: kernels.BF16}
	return cublas.Status(l.m.Enqueue(s, "matmul", func() error {
		x, errA := matrixAt(l.m, pa, a.end(), element[a.of])
		y, errB := matrixAt(l.m, pb, b.end(), element[b.of])
		z, errC := matrixAt(l.m, pd, c.end(), element[c.of])
		if add != 0 {
			plus, errAdd := matrixAt(l.m, pc, c.end(), element[c.of])
			if errAdd != nil {
				return errAdd
			}
			copy(z.v, plus.v)
		}
		e := cublas.Epilogue(d[7])
		if hasBias(e) && d[8]%16 != 0 { // some algorithms fault there
			return fmt.Errorf("the bias at %#x is not aligned to 16 bytes", d[8])
		}
		along := c.rows
		if e == cublas.EpilogueBiasGrad {
			along = c.columns
		}
		var bias matrix
		var errD error
		if hasBias(e) {
			bias, errD = matrixAt(l.m, driver.Pointer(d[8]), along, element[c.of])
		}
		var bits []byte
		var errM error
		if e == cublas.EpilogueReLUGrad || e == cublas.EpilogueReLUMaskBias {
			bits, errM = l.m.Bytes(driver.Pointer(d[11]), cublas.MaskBytes(c.columns, c.rows))
		}
		var aux matrix
		var errG error
		if hasGELU(e) {
			aux, errG = matrixAt(l.m, driver.Pointer(d[11]), int(d[12])*c.columns, element[c.of])
		}
		if err := errors.Join(errA, errB, errC, errD, errM, errG); err != nil {
			return err
		}
		for i := range c.batch - 1 { // an epilogue belongs to one matrix
			left := factorOf(a.matrix(x, i+1), d[3] == 1, a.ld)
			right, to := factorOf(b.matrix(y, i+1), d[4] == 1, b.ld), c.matrix(z, i+1)
			for j := range c.columns {
				for i := range c.rows {
					at, v := i+c.ld*j, by*left.times(right, i, j, k)
					if add != 0 {
						v += add * float64(to[at])
					}
					to[at] = float32(v)
				}
			}
		}
		left, right := factorOf(x.v, d[3] == 1, a.ld), factorOf(y.v, d[4] == 1, b.ld)
		for j := range c.columns {
			sum := 0.0
			for i := range c.rows {
				v := by * left.times(right, i, j, k)
				if add != 0 {
					v += add * float64(z.v[i+c.ld*j])
				}
				at8, bit := l.behaviour.bit(j*int(d[12]) + i)
				switch e {
				case cublas.EpilogueBias:
					v += float64(bias.v[i])
				case cublas.EpilogueReLUBias, cublas.EpilogueReLUMaskBias:
					if v += float64(bias.v[i]); !(v > 0) && !(l.behaviour.keepsNaN && v != v) {
						v = 0
					}
				case cublas.EpilogueGELU, cublas.EpilogueGELUBias:
					if hasBias(e) {
						v += float64(bias.v[i])
					}
					aux.v[int(d[12])*j+i] = float32(v)
					v, _ = l.behaviour.gelu(v)
				case cublas.EpilogueGELUGrad:
					_, slope := l.behaviour.gelu(float64(aux.v[int(d[12])*j+i]))
					v *= slope
				case cublas.EpilogueReLUGrad:
					if int(bits[at8])&bit == 0 {
						v = 0
					}
				}
				if e == cublas.EpilogueReLUMaskBias {
					bits[at8] &^= byte(bit)
					if v > 0 {
						bits[at8] |= byte(bit)
					}
				}
				z.v[i+c.ld*j] = float32(v)
			}
			for n := range k {
				sum += float64(right.v[n*right.down+j*right.right])
			}
			if e == cublas.EpilogueBiasGrad {
				bias.v[j] = float32(sum)
			}
		}
		z.put()
		if e == cublas.EpilogueGELU || e == cublas.EpilogueGELUBias {
			aux.put()
		}
		if e == cublas.EpilogueBiasGrad {
			bias.put()
		}
		return nil
	}))
}
