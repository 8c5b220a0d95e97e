package cublas

import (
	"fmt"

	"fspda/cuda/driver"
	"fspda/cuda/dynlib"
)

// Status is the status code that every function returns; 0 is success.
type Status int32

// Ptr is the address of an object of the library, such as its handle for one GPU and one thread.
type Ptr uintptr

// Type is the element type of a matrix.
type Type int32

const (
	Float32  Type = 0
	Float16  Type = 2
	BFloat16 Type = 14
)

// Compute is the precision in which products are computed and summed.
type Compute int32

const (
	ComputeFloat32 Compute = 68
	ComputeTF32    Compute = 77 // factors are rounded to 10 bits of mantissa
)

// noReducedReduction is a mode of mathematics: parts of a sum that are computed apart are added in
// float32, not in the 16 bits of the result, which would round each partial sum.
const noReducedReduction = 16

// algoDefault lets the library choose an algorithm.
const algoDefault = -1

// API is the table of the cuBLAS functions that this program calls.
type API struct {
	Create       func(out *Ptr) Status                            `sym:"cublasCreate_v2"`
	Destroy      func(h Ptr) Status                               `sym:"cublasDestroy_v2"`
	SetStream    func(h Ptr, s driver.Stream) Status              `sym:"cublasSetStream_v2"`
	SetWorkspace func(h Ptr, at driver.Pointer, n uintptr) Status `sym:"cublasSetWorkspace_v2"`
	SetMathMode  func(h Ptr, mode int32) Status                   `sym:"cublasSetMathMode"`
	StatusString func(s Status) string                            `sym:"cublasGetStatusString"`
	GemmEx       func(h Ptr, transA, transB, m, n, k int32, alpha *float32, a driver.Pointer, typeA Type, lda int32,
		b driver.Pointer, typeB Type, ldb int32, beta *float32, c driver.Pointer, typeC Type, ldc int32,
		compute Compute, algo int32) Status `sym:"cublasGemmEx"`
}

// Bind binds the functions of cuBLAS.
func Bind(h *dynlib.Handle) (*API, error) {
	a := &API{}
	return a, dynlib.Bind(a, h)
}

// Error is a failed call.
type Error struct {
	Call   string
	Status Status
	Text   string
}

func (e *Error) Error() string {
	return fmt.Sprintf("cublas: %s: %s (%d)", e.Call, e.Text, int32(e.Status))
}

func (a *API) Check(s Status, call string) error { return checked(a.StatusString, s, call) }

// checked returns the error of a status, with the library's message if message is not nil.
func checked(message func(Status) string, s Status, call string) error {
	if s == 0 {
		return nil
	}
	e := &Error{Call: call, Status: s, Text: "failed"}
	if message != nil {
		e.Text = message(s)
	}
	return e
}

// Handle multiplies matrices on one stream. It belongs to one thread.
type Handle struct {
	api       *API
	h         Ptr
	one, zero *float32 // they lie on the heap, because the library reads them there
}

func (a *API) New(s driver.Stream) (*Handle, error) {
	h := &Handle{api: a, one: new(float32), zero: new(float32)}
	*h.one = 1
	if err := a.Check(a.Create(&h.h), "cublasCreate"); err != nil {
		return nil, err
	}
	if err := a.Check(a.SetStream(h.h, s), "cublasSetStream"); err != nil {
		return nil, err
	}
	return h, a.Check(a.SetMathMode(h.h, noReducedReduction), "cublasSetMathMode")
}

// UseWorkspace gives the handle device memory to work in, so that it allocates none during stream
// capture and its results are reproducible.
func (h *Handle) UseWorkspace(at driver.Pointer, bytes int) error {
	return h.api.Check(h.api.SetWorkspace(h.h, at, uintptr(bytes)), "cublasSetWorkspace")
}

func (h *Handle) Close() error { return h.api.Check(h.api.Destroy(h.h), "cublasDestroy") }

// Product is C = A·B of matrices stored by rows without gaps: C is m×n, A m×k (k×m if TransA), B
// k×n (n×k if TransB).
type Product struct {
	M, N, K        int
	TransA, TransB bool
	A, B, C        driver.Pointer
	Type           Type // the number type of A and B
	TypeC          Type // the number type of C: Type or Float32
	Compute        Compute
	Add            bool // C is a summand of the result
}

func (h *Handle) Gemm(p Product) error {
	for _, d := range []int{p.M, p.N, p.K} {
		if d != int(int32(d)) {
			return fmt.Errorf("cublas: product of %d×%d×%d: dimensions must be below 2³¹", p.M, p.N, p.K)
		}
	}
	// Read by columns, the stored matrices are transposes: Cᵀ = Bᵀ·Aᵀ.
	lda, ldb := p.K, p.N
	if p.TransA {
		lda = p.M
	}
	if p.TransB {
		ldb = p.K
	}
	beta := h.zero
	if p.Add {
		beta = h.one
	}
	s := h.api.GemmEx(h.h, op(p.TransB), op(p.TransA), int32(p.N), int32(p.M), int32(p.K), h.one, p.B, p.Type,
		int32(ldb), p.A, p.Type, int32(lda), beta, p.C, p.TypeC, int32(p.N), p.Compute, algoDefault)
	return h.api.Check(s, fmt.Sprintf("cublasGemmEx of %d×%d×%d", p.M, p.N, p.K))
}

func op(trans bool) int32 {
	if trans {
		return 1
	}
	return 0
}
