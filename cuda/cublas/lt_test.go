package cublas

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"fspda/cuda/driver"
	"fspda/cuda/dynlib"
)

// The library exports every function of LtAPI, and accepts descriptions of products without a GPU.
func TestBindLt(t *testing.T) {
	for _, major := range []int{12, 13} {
		t.Run(fmt.Sprint(major), func(t *testing.T) {
			h, err := dynlib.System().Open(dynlib.CUBLASLt(major))
			if err != nil {
				t.Skipf("%v (set %s to a folder with it)", err, dynlib.PathVariable)
			}
			a, err := BindLt(h)
			if err != nil {
				t.Fatal(err)
			}
			readBack(t, h, a)
		})
	}
}

// Heuristic has the memory layout of the C struct.
func TestHeuristic(t *testing.T) {
	if s, at := unsafe.Sizeof(Heuristic{}), unsafe.Offsetof(Heuristic{}.Status); s != 96 || at != 72 {
		t.Errorf("%d bytes, status at %d; want 96 and 72", s, at)
	}
}

// fakeLt is a cuBLASLt that records its calls.
type fakeLt struct {
	calls []string
	next  Ptr
	live  int
	none  bool // has no algorithm
}

func (l *fakeLt) api() *LtAPI {
	record := func(format string, args ...any) Status {
		l.calls = append(l.calls, fmt.Sprintf(format, args...))
		return 0
	}
	make := func(out *Ptr) Status { l.next++; l.live++; *out = l.next; return 0 }
	destroy := func(Ptr) Status { l.live--; return 0 }
	word := func(p unsafe.Pointer, n uintptr) uint64 {
		if n == 8 {
			return *(*uint64)(p)
		}
		return uint64(*(*uint32)(p))
	}
	return &LtAPI{
		Create: make, Destroy: destroy, DestroyDesc: destroy, DestroyLayout: destroy, DestroyPref: destroy,
		CreatePref: make,
		CreateDesc: func(out *Ptr, c Compute, s Type) Status { record("desc %d %d", c, s); return make(out) },
		SetDesc: func(_ Ptr, at int32, v unsafe.Pointer, n uintptr) Status {
			return record("set %d = %d", at, word(v, n))
		},
		CreateLayout: func(out *Ptr, of Type, rows, columns uint64, ld int64) Status {
			record("layout %d: %d×%d by %d", of, rows, columns, ld)
			return make(out)
		},
		SetLayout: func(_ Ptr, at int32, v unsafe.Pointer, n uintptr) Status {
			return record("place %d = %d", at, word(v, n))
		},
		CheckAlgo: func(_, _, _, _, _, _ Ptr, algo *Algo, found *Heuristic) Status {
			if *found = (Heuristic{Memory: 77}); l.none {
				return notSupported
			}
			return record("check %d", algo[0])
		},
		SetPref: func(_ Ptr, at int32, v unsafe.Pointer, n uintptr) Status {
			return record("prefer %d = %d", at, word(v, n))
		},
		Heuristic: func(_, _, _, _, _, _, _ Ptr, asked int32, all *Heuristic, got *int32) Status {
			if l.none {
				return notSupported
			}
			*got, *all = 1, Heuristic{Algo: Algo{7}, Memory: 99}
			return record("advise %d", asked)
		},
		Matmul: func(_, _ Ptr, alpha *float32, a driver.Pointer, _ Ptr, b driver.Pointer, _ Ptr, beta *float32,
			c driver.Pointer, _ Ptr, d driver.Pointer, _ Ptr,
			algo *Algo, workspace driver.Pointer, n uintptr, s driver.Stream) Status {
			return record("multiply %v·%d·%d + %v·%d to %d by %d in %d bytes at %d on %d", *alpha, a, b, *beta, c, d,
				algo[0], n, workspace, s)
		},
	}
}

// A product by rows is a product of the transposes by columns. Its algorithm is chosen once, for
// the alignment of its operands, and everything is destroyed at the end.
func TestMatmul(t *testing.T) {
	l := &fakeLt{}
	lt, err := l.api().New(5, 4096, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	m, err := lt.NewMatmul(Product{M: 2, N: 3, K: 4, TransB: true, A: 256, B: 260, C: 512, Type: Float16,
		TypeC: Float32, Compute: ComputeFloat32}, EpilogueBias, Operands{Bias: 8})
	if err != nil {
		t.Fatal(err)
	}
	for _, bias := range []driver.Pointer{1024, 2048} {
		if err := m.Run(256, 260, 512, Operands{Bias: bias}); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"desc 68 0", "set 3 = 1", "set 4 = 0", "set 7 = 4", "set 8 = 8",
		"layout 2: 4×3 by 4", "layout 2: 4×2 by 4", "layout 0: 3×2 by 3",
		"prefer 1 = 1048576", "prefer 3 = 2", "prefer 5 = 4", "prefer 6 = 256", "prefer 7 = 256", "prefer 8 = 256",
		"advise 1",
		"set 8 = 1024", "multiply 1·260·256 + 0·512 to 512 by 7 in 99 bytes at 4096 on 5",
		"set 8 = 2048", "multiply 1·260·256 + 0·512 to 512 by 7 in 99 bytes at 4096 on 5"}
	if !slices.Equal(l.calls, want) {
		t.Errorf("calls\n%s\nwant\n%s", strings.Join(l.calls, "\n"), strings.Join(want, "\n"))
	}
	l.none = true
	if _, err := lt.NewMatmul(Product{M: 2, N: 3, K: 4}, EpilogueBiasGrad, Operands{}); !errors.Is(err,
		ErrUnsupported) {
		t.Errorf("without an algorithm: %v", err)
	}
	if err := errors.Join(m.Close(), lt.Close()); err != nil || l.live != 0 {
		t.Errorf("%d are left (%v)", l.live, err)
	}
}

// Several products with one algorithm: it is chosen for the first number of matrices, and checked
// for others.
func TestBatched(t *testing.T) {
	l := &fakeLt{}
	lt, err := l.api().New(5, 4096, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	b := Batch{Product: Product{M: 2, N: 3, K: 4, A: 256, B: 512, C: 260, Type: BFloat16, TypeC: BFloat16,
		Compute: ComputeFloat32}, Alpha: 2, Beta: -3, Count: 6, StrideA: 8, StrideB: 12, StrideD: 16}
	first, err := lt.NewBatched(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	b.Count = 24
	more, err := lt.NewBatched(b, first)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(first.Run(1024, 256, 512, 768), more.Run(1024, 256, 512, 768)); err != nil {
		t.Fatal(err)
	}
	described := []string{"desc 68 0", "set 3 = 0", "set 4 = 0", "set 7 = 1", "layout 14: 3×4 by 3",
		"layout 14: 4×2 by 4", "layout 14: 3×2 by 3"}
	places := func(count int) (all []string) {
		for _, stride := range []int{12, 8, 16} {
			all = append(all, fmt.Sprintf("place 5 = %d", count), fmt.Sprintf("place 6 = %d", stride))
		}
		return all
	}
	want := slices.Concat(described, places(6), []string{"prefer 1 = 1048576", "prefer 3 = 0", "prefer 5 = 256",
		"prefer 6 = 256", "prefer 7 = 4", "prefer 8 = 4", "advise 1"}, described, places(24), []string{"check 7",
		"multiply 2·512·256 + -3·768 to 1024 by 7 in 99 bytes at 4096 on 5",
		"multiply 2·512·256 + -3·768 to 1024 by 7 in 77 bytes at 4096 on 5"})
	if !slices.Equal(l.calls, want) {
		t.Errorf("calls\n%s\nwant\n%s", strings.Join(l.calls, "\n"), strings.Join(want, "\n"))
	}
	l.none = true
	for _, like := range []*Batched{nil, first} {
		if _, err := lt.NewBatched(b, like); !errors.Is(err, ErrUnsupported) {
			t.Errorf("without an algorithm: %v", err)
		}
	}
	if err := errors.Join(first.Close(), more.Close(), lt.Close()); err != nil || l.live != 0 {
		t.Errorf("%d are left (%v)", l.live, err)
	}
}
