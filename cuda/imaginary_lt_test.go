package cuda

import (
	"errors"
	"unsafe"

	"fspda/cuda/cublas"
	"fspda/cuda/driver"
	"fspda/cuda/driver/drivertest"
	"fspda/cuda/kernels"
)

// light is cuBLASLt as loops. It has no algorithm for results of five columns, so that the kernels that stand in for it are seen too.
type light struct {
	m       *drivertest.Machine
	next    cublas.Raw
	descs   map[cublas.Raw]*[9]uint64 // attributes
	layouts map[cublas.Raw]lightLayout
}

type lightLayout struct {
	of            cublas.Type
	rows, columns int
	ld            int
}

func imaginaryLt(m *drivertest.Machine) *cublas.LtAPI {
	l := &light{m: m, descs: map[cublas.Raw]*[9]uint64{}, layouts: map[cublas.Raw]lightLayout{}}
	make := func(out *cublas.Raw) cublas.Status { l.next++; *out = l.next; return 0 }
	done := func(cublas.Raw) cublas.Status { return 0 }
	return &cublas.LtAPI{
		Create: make, Destroy: done, CreatePref: make, DestroyPref: done,
		SetPref: func(cublas.Raw, int32, unsafe.Pointer, uintptr) cublas.Status { return 0 },
		CreateDesc: func(out *cublas.Raw, _ cublas.Compute, _ cublas.Type) cublas.Status {
			make(out)
			l.descs[*out] = &[9]uint64{}
			return 0
		},
		SetDesc: func(d cublas.Raw, at int32, v unsafe.Pointer, n uintptr) cublas.Status {
			if n == 8 {
				l.descs[d][at] = *(*uint64)(v)
			} else {
				l.descs[d][at] = uint64(*(*uint32)(v))
			}
			return 0
		},
		DestroyDesc: func(d cublas.Raw) cublas.Status { delete(l.descs, d); return 0 },
		CreateLayout: func(out *cublas.Raw, of cublas.Type, rows, columns uint64, ld int64) cublas.Status {
			make(out)
			l.layouts[*out] = lightLayout{of, int(rows), int(columns), int(ld)}
			return 0
		},
		DestroyLayout: func(d cublas.Raw) cublas.Status { delete(l.layouts, d); return 0 },
		Heuristic: func(_, _, _, _, c, _, _ cublas.Raw, _ int32, all *cublas.Heuristic, got *int32) cublas.Status {
			if l.layouts[c].rows == 5 {
				return 15
			}
			*got, *all = 1, cublas.Heuristic{Algo: cublas.Algo{7}}
			return 0
		},
		Matmul: l.multiply,
	}
}

// multiply is D = op(A)·op(B) by columns, with what follows.
func (l *light) multiply(_, desc cublas.Raw, _ *float32, pa driver.Pointer, la cublas.Raw, pb driver.Pointer, lb cublas.Raw, _ *float32, _ driver.Pointer, _ cublas.Raw,
	pd driver.Pointer, ld cublas.Raw, algo *cublas.Algo, _ driver.Pointer, _ uintptr, s driver.Stream) cublas.Status {
	d, a, b, c := *l.descs[desc], l.layouts[la], l.layouts[lb], l.layouts[ld]
	element := map[cublas.Type]kernels.Element{cublas.Float32: kernels.F32, cublas.Float16: kernels.F16, cublas.BFloat16: kernels.BF16}
	k := a.columns
	if d[3] == 1 {
		k = a.rows
	}
	if algo[0] != 7 || a.of != b.of {
		return 7
	}
	return cublas.Status(l.m.Do(s, "matmul", func() error {
		x, errA := matrixAt(l.m, pa, a.rows*a.columns, element[a.of])
		y, errB := matrixAt(l.m, pb, b.rows*b.columns, element[b.of])
		z, errC := matrixAt(l.m, pd, c.rows*c.columns, element[c.of])
		e := cublas.Epilogue(d[7])
		along := c.rows
		if e == cublas.SumsOfA {
			along = c.columns
		}
		bias, errD := matrixAt(l.m, driver.Pointer(d[8]), along, element[c.of])
		if err := errors.Join(errA, errB, errC, errD); err != nil {
			return err
		}
		at := func(v []float32, trans uint64, ld, i, j int) float64 {
			if trans == 1 {
				i, j = j, i
			}
			return float64(v[i+ld*j])
		}
		for j := range c.columns {
			sum := 0.0
			for i := range c.rows {
				v := 0.0
				for n := range k {
					v += at(x.v, d[3], a.ld, i, n) * at(y.v, d[4], b.ld, n, j)
				}
				if e != cublas.SumsOfA {
					v += float64(bias.v[i])
				}
				if e == cublas.WithBiasReLU && v < 0 {
					v = 0
				}
				z.v[i+c.ld*j] = float32(v)
			}
			for n := range k {
				sum += at(y.v, d[4], b.ld, n, j)
			}
			if e == cublas.SumsOfA {
				bias.v[j] = float32(sum)
			}
		}
		z.put()
		if e == cublas.SumsOfA {
			bias.put()
		}
		return nil
	}))
}
