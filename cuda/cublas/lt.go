package cublas

import (
	"errors"
	"fmt"
	"unsafe"

	"fspda/cuda/driver"
	"fspda/cuda/dynlib"
)

// LtAPI is the table of the cuBLASLt functions that this program calls: products with an epilogue.
type LtAPI struct {
	Create     func(out *Ptr) Status                              `sym:"cublasLtCreate"`
	Destroy    func(h Ptr) Status                                 `sym:"cublasLtDestroy"`
	CreateDesc func(out *Ptr, compute Compute, scale Type) Status `sym:"cublasLtMatmulDescCreate"`
	SetDesc    func(d Ptr, attribute int32, value unsafe.Pointer,
		n uintptr) Status `sym:"cublasLtMatmulDescSetAttribute"`
	DestroyDesc  func(d Ptr) Status                                             `sym:"cublasLtMatmulDescDestroy"`
	CreateLayout func(out *Ptr, of Type, rows, columns uint64, ld int64) Status `sym:"cublasLtMatrixLayoutCreate"`
	SetLayout    func(l Ptr, attribute int32, value unsafe.Pointer,
		n uintptr) Status `sym:"cublasLtMatrixLayoutSetAttribute"`
	DestroyLayout func(l Ptr) Status    `sym:"cublasLtMatrixLayoutDestroy"`
	CreatePref    func(out *Ptr) Status `sym:"cublasLtMatmulPreferenceCreate"`
	SetPref       func(p Ptr, attribute int32, value unsafe.Pointer,
		n uintptr) Status `sym:"cublasLtMatmulPreferenceSetAttribute"`
	DestroyPref  func(p Ptr) Status    `sym:"cublasLtMatmulPreferenceDestroy"`
	StatusString func(s Status) string `sym:"cublasLtGetStatusString"`
	Heuristic    func(h, desc, a, b, c, d, pref Ptr, asked int32, all *Heuristic,
		got *int32) Status `sym:"cublasLtMatmulAlgoGetHeuristic"`
	CheckAlgo func(h, desc, a, b, c, d Ptr, algo *Algo, found *Heuristic) Status `sym:"cublasLtMatmulAlgoCheck"`
	Matmul    func(h, desc Ptr, alpha *float32, a driver.Pointer, la Ptr, b driver.Pointer, lb Ptr, beta *float32,
		c driver.Pointer, lc Ptr, d driver.Pointer, ld Ptr, algo *Algo, workspace driver.Pointer, n uintptr,
		s driver.Stream) Status `sym:"cublasLtMatmul"`
}

// Algo is an algorithm in the library's opaque format.
type Algo [8]uint64

// Heuristic is an algorithm that the library recommends, in the memory layout of the library.
type Heuristic struct {
	Algo   Algo
	Memory uintptr // bytes of workspace
	Status Status
	_      [5]int32
}

// BindLt binds the functions of cuBLASLt.
func BindLt(h *dynlib.Handle) (*LtAPI, error) {
	a := &LtAPI{}
	return a, dynlib.Bind(a, h)
}

// Attributes of products and of algorithm preferences.
const (
	descTransA   = 3
	descTransB   = 4
	descEpilogue = 7
	descBias     = 8
	descAux      = 11 // address of the epilogue's Aux
	descAuxRow   = 12 // bits of a mask, or numbers, from one row of it to the next

	layoutBatch  = 5 // how many matrices there are
	layoutStride = 6 // numbers from one matrix to the next

	prefWorkspace = 1
	prefReduction = 3
	prefAlignment = 5 // the alignment of A; 6, 7 and 8 are the alignments of B, C and D
)

// reduceInCompute is the only scheme that may add the parts of a split sum: in the workspace, in
// float32. The others add in the type of the result. With reduceNone no sum is split.
const (
	reduceNone      = 0
	reduceInCompute = 2
)

// Lt multiplies matrices with epilogues on one stream. It belongs to one thread.
type Lt struct {
	api            *LtAPI
	h              Ptr
	stream         driver.Stream
	workspace      driver.Pointer
	workspaceBytes int
	one, zero      *float32 // they lie on the heap, because the library reads them there
}

// New returns an Lt for a stream of the current context, with a workspace of device memory.
func (a *LtAPI) New(s driver.Stream, workspace driver.Pointer, workspaceBytes int) (*Lt, error) {
	l := &Lt{api: a, stream: s, workspace: workspace, workspaceBytes: workspaceBytes, one: new(float32),
		zero: new(float32)}
	*l.one = 1
	if err := a.check(a.Create(&l.h), "cublasLtCreate"); err != nil {
		return nil, err
	}
	return l, nil
}

// UseWorkspace has products use other device memory of the same size.
func (l *Lt) UseWorkspace(at driver.Pointer) { l.workspace = at }

func (l *Lt) Close() error { return l.api.check(l.api.Destroy(l.h), "cublasLtDestroy") }

// check returns nil for status 0, and else an *Error.
func (a *LtAPI) check(s Status, call string) error { return checked(a.StatusString, s, call) }

// ErrUnsupported reports that the library has no algorithm for a product with its epilogue.
var ErrUnsupported = errors.New("cublas: no algorithm computes this product with its epilogue")

// Matmul is a product with an epilogue, for given shapes, and a chosen algorithm. Of the addresses
// in a Product only the alignment matters.
type Matmul struct {
	lt            *Lt
	desc, a, b, c Ptr
	algo          *Algo
	memory        uintptr
	epilogue      Epilogue
	operands      *Operands
	name          string
}

// NewMatmul chooses the algorithm that the library recommends. The error is ErrUnsupported if there
// is none.
func (l *Lt) NewMatmul(p Product, e Epilogue, b Operands) (*Matmul, error) {
	m := &Matmul{lt: l, algo: new(Algo), epilogue: e, operands: &b,
		name: fmt.Sprintf("cublasLtMatmul of %d×%d×%d with epilogue %d", p.M, p.N, p.K, e)}
	if e.hasGELU() && p.N%geluColumns != 0 {
		return nil, ErrUnsupported
	}
	err := m.describe(p)
	if err == nil {
		err = m.choose(p, reduceInCompute)
	}
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// describe passes the shapes to the library. Read by columns, the stored matrices are transposes,
// Cᵀ = Bᵀ·Aᵀ, so A and B change places.
func (m *Matmul) describe(p Product) error {
	a := m.lt.api
	layout := func(out *Ptr, of Type, rows, columns int) Status {
		return a.CreateLayout(out, of, uint64(columns), uint64(rows), int64(columns))
	}
	swapped := func(trans bool, rows, columns int) (int, int) {
		if trans {
			return columns, rows
		}
		return rows, columns
	}
	rowsA, columnsA := swapped(p.TransA, p.M, p.K)
	rowsB, columnsB := swapped(p.TransB, p.K, p.N)
	if err := a.check(a.CreateDesc(&m.desc, p.Compute, Float32), m.name); err != nil {
		return err
	}
	transA, transB, row := op(p.TransA), op(p.TransB), int64(m.epilogue.auxRow(p.N))
	if m.epilogue.hasAux() {
		if err := a.check(a.SetDesc(m.desc, descAuxRow, unsafe.Pointer(&row), 8), m.name); err != nil {
			return err
		}
	}
	for _, s := range []Status{
		a.SetDesc(m.desc, descTransA, unsafe.Pointer(&transB), 4), a.SetDesc(m.desc, descTransB,
			unsafe.Pointer(&transA), 4),
		a.SetDesc(m.desc, descEpilogue, unsafe.Pointer(&m.epilogue), 4), m.point(),
		layout(&m.a, p.Type, rowsB, columnsB), layout(&m.b, p.Type, rowsA, columnsA), layout(&m.c, p.TypeC, p.M, p.N),
	} {
		if err := a.check(s, m.name); err != nil {
			return err
		}
	}
	return nil
}

// point passes the addresses of the epilogue's operands to the library.
func (m *Matmul) point() Status {
	if m.epilogue.hasAux() {
		if s := m.lt.api.SetDesc(m.desc, descAux, unsafe.Pointer(&m.operands.Aux), 8); s != 0 {
			return s
		}
	}
	if !m.epilogue.hasBias() {
		return 0
	}
	return m.lt.api.SetDesc(m.desc, descBias, unsafe.Pointer(&m.operands.Bias), 8)
}

// alignment returns the largest power of two that divides an address, at most 256.
func alignment(p driver.Pointer) uint32 {
	n := uint32(256)
	for uint64(p)%uint64(n) != 0 {
		n /= 2
	}
	return n
}

// notSupported is CUBLAS_STATUS_NOT_SUPPORTED, returned if there is no algorithm.
const notSupported = 15

// choose takes the algorithm that the library recommends. schemes may add the parts of split sums.
func (m *Matmul) choose(p Product, schemes uint32) error {
	a := m.lt.api
	var pref Ptr
	if err := a.check(a.CreatePref(&pref), m.name); err != nil {
		return err
	}
	var best Heuristic
	got := int32(0)
	err := m.prefer(pref, p, schemes)
	if err == nil {
		switch s := a.Heuristic(m.lt.h, m.desc, m.a, m.b, m.c, m.c, pref, 1, &best, &got); {
		case s == notSupported || s == 0 && (got < 1 || best.Status != 0):
			err = ErrUnsupported
		default:
			err = a.check(s, m.name)
		}
	}
	*m.algo, m.memory = best.Algo, best.Memory
	return errors.Join(err, a.check(a.DestroyPref(pref), m.name))
}

// prefer passes the workspace size, the schemes of reduction and the alignments of the matrices to
// the library.
func (m *Matmul) prefer(pref Ptr, p Product, schemes uint32) error {
	a := m.lt.api
	memory := uintptr(m.lt.workspaceBytes)
	err := errors.Join(a.check(a.SetPref(pref, prefWorkspace, unsafe.Pointer(&memory), 8), m.name),
		a.check(a.SetPref(pref, prefReduction, unsafe.Pointer(&schemes), 4), m.name))
	for i, at := range []driver.Pointer{p.B, p.A, p.C, p.C} {
		n := alignment(at)
		err = errors.Join(err, a.check(a.SetPref(pref, prefAlignment+int32(i), unsafe.Pointer(&n), 4), m.name))
	}
	return err
}

// Run enqueues the product on the stream. All addresses must have the alignment that the algorithm
// was chosen for.
func (m *Matmul) Run(a, b, c driver.Pointer, operands Operands) error {
	l := m.lt
	*m.operands = operands
	if err := l.api.check(m.point(), m.name); err != nil {
		return err
	}
	return l.api.check(l.api.Matmul(l.h, m.desc, l.one, b, m.a, a, m.b, l.zero, c, m.c, c, m.c, m.algo, l.workspace,
		m.memory, l.stream), m.name)
}

// Close destroys the library's descriptors of the product.
func (m *Matmul) Close() error {
	a := m.lt.api
	var err error
	if m.desc != 0 {
		err = a.check(a.DestroyDesc(m.desc), m.name)
	}
	for _, l := range []Ptr{m.a, m.b, m.c} {
		if l != 0 {
			err = errors.Join(err, a.check(a.DestroyLayout(l), m.name))
		}
	}
	m.desc, m.a, m.b, m.c = 0, 0, 0, 0
	return err
}
