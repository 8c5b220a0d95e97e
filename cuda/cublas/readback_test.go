package cublas

import (
	"errors"
	"slices"
	"testing"
	"unsafe"

	"fspda/cuda/driver"
	"fspda/cuda/dynlib"
)

// attributes binds the functions that read back the attributes of descriptors.
type attributes struct {
	Desc func(d Ptr, attribute int32, value unsafe.Pointer, n uintptr,
		wrote *uintptr) Status `sym:"cublasLtMatmulDescGetAttribute"`
	Layout func(l Ptr, attribute int32, value unsafe.Pointer, n uintptr,
		wrote *uintptr) Status `sym:"cublasLtMatrixLayoutGetAttribute"`
	Pref func(p Ptr, attribute int32, value unsafe.Pointer, n uintptr,
		wrote *uintptr) Status `sym:"cublasLtMatmulPreferenceGetAttribute"`
}

// all reads attributes of the given size each.
func (a attributes) all(t *testing.T, get func(Ptr, int32, unsafe.Pointer, uintptr, *uintptr) Status, of Ptr,
	bytes uintptr, which ...int32) (found []uint64) {
	t.Helper()
	for _, at := range which {
		var v uint64
		var wrote uintptr
		if s := get(of, at, unsafe.Pointer(&v), bytes, &wrote); s != 0 || wrote != bytes {
			t.Errorf("attribute %d: status %d, %d bytes, want %d", at, s, wrote, bytes)
		}
		found = append(found, v)
	}
	return found
}

// readBack describes a product with every epilogue to the real library, without a GPU, and reads
// the descriptions back.
func readBack(t *testing.T, h *dynlib.Handle, a *LtAPI) {
	t.Helper()
	var get attributes
	if err := dynlib.Bind(&get, h); err != nil {
		t.Fatal(err)
	}
	want := func(what string, got []uint64, want ...uint64) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	p := Product{M: 8, N: 300, K: 24, TransB: true, A: 256, B: 260, C: 512, Type: BFloat16, TypeC: Float32,
		Compute: ComputeTF32}
	for _, e := range []Epilogue{epilogueNone, EpilogueBias, EpilogueReLUBias, EpilogueReLUMaskBias,
		EpilogueReLUGrad, EpilogueGELU, EpilogueGELUBias, EpilogueGELUGrad, EpilogueBiasGrad} {
		m := &Matmul{lt: &Lt{api: a, workspaceBytes: 1 << 20}, epilogue: e,
			operands: &Operands{Bias: 0x1000, Aux: 0x2000}, name: "a test"}
		if err := m.describe(p); err != nil {
			t.Fatalf("epilogue %d: %v", e, err)
		}
		// Compute type, scale type, transpositions, epilogue.
		want("product", get.all(t, get.Desc, m.desc, 4, 0, 1, descTransA, descTransB, descEpilogue), 77, 0, 1, 0,
			uint64(e))
		if e.hasBias() {
			want("bias", get.all(t, get.Desc, m.desc, 8, descBias), 0x1000)
		}
		if e.hasMask() {
			want("mask", get.all(t, get.Desc, m.desc, 8, descAux, descAuxRow), 0x2000, 384)
		}
		if e.hasGELU() {
			want("GELU", get.all(t, get.Desc, m.desc, 8, descAux, descAuxRow), 0x2000, 300)
		}
		for _, l := range []struct {
			of   Ptr
			want []uint64
		}{{m.a, []uint64{14, 24, 300, 24}}, {m.b, []uint64{14, 24, 8, 24}}, {m.c, []uint64{0, 300, 8, 300}}} {
			want("layout", append(get.all(t, get.Layout, l.of, 4, 0), get.all(t, get.Layout, l.of, 8, 2, 3, 4)...),
				l.want...)
		}
		if err := m.repeat(Batch{Count: 7, StrideA: 192, StrideB: 7232, StrideD: 2432}); err != nil {
			t.Error(err)
		}
		for _, l := range []struct {
			of     Ptr
			stride uint64
		}{{m.a, 7232}, {m.b, 192}, {m.c, 2432}} {
			want("count", get.all(t, get.Layout, l.of, 4, layoutBatch), 7)
			want("stride", get.all(t, get.Layout, l.of, 8, layoutStride), l.stride)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
	m := &Matmul{lt: &Lt{api: a, workspaceBytes: 1 << 20}}
	var pref Ptr
	if err := errors.Join(a.check(a.CreatePref(&pref), "creating"), m.prefer(pref, p, reduceInCompute)); err != nil {
		t.Fatal(err)
	}
	want("memory", get.all(t, get.Pref, pref, 8, prefWorkspace), 1<<20)
	want("schemes of reduction", get.all(t, get.Pref, pref, 4, prefReduction), 2)
	want("alignments", get.all(t, get.Pref, pref, 4, 5, 6, 7, 8), 4, 256, 256, 256)
	if err := a.check(a.DestroyPref(pref), "destroying"); err != nil {
		t.Error(err)
	}
}

// Without a GPU the libraries refuse to start, with their own message.
func TestNoGPU(t *testing.T) {
	if driverInstalled() {
		t.Skip("this machine has the kernel module of a GPU")
	}
	for _, major := range []int{12, 13} {
		h, err := dynlib.System().Open(dynlib.CUBLAS(major))
		if err != nil {
			t.Logf("%v (set %s to a folder with it)", err, dynlib.PathVariable)
			continue
		}
		a, err := Bind(h)
		if err != nil {
			t.Fatal(err)
		}
		if made, err := a.New(0); made != nil || err == nil ||
			err.Error() != "cublas: cublasCreate: the library was not initialized (1)" {
			t.Errorf("cuBLAS %d: %v, %v", major, made, err)
		}
		if h, err = dynlib.System().Open(dynlib.CUBLASLt(major)); err != nil {
			t.Fatal(err)
		}
		lt, err := BindLt(h)
		if err != nil {
			t.Fatal(err)
		}
		if made, err := lt.New(0, driver.Pointer(0), 0); made != nil || err == nil ||
			err.Error() != "cublas: cublasLtCreate: the library was not initialized (1)" {
			t.Errorf("cuBLASLt %d: %v, %v", major, made, err)
		}
	}
}
