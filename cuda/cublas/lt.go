package cublas

import (
	"errors"
	"fmt"
	"unsafe"

	"fspda/cuda/driver"
	"fspda/cuda/dynlib"
)

// LtAPI is the functions of cuBLASLt that are used: products that do something to the result before it is written.
type LtAPI struct {
	Create        func(out *Raw) Status                                                               `sym:"cublasLtCreate"`
	Destroy       func(h Raw) Status                                                                  `sym:"cublasLtDestroy"`
	CreateDesc    func(out *Raw, compute Compute, scale Type) Status                                  `sym:"cublasLtMatmulDescCreate"`
	SetDesc       func(d Raw, attribute int32, value unsafe.Pointer, n uintptr) Status                `sym:"cublasLtMatmulDescSetAttribute"`
	DestroyDesc   func(d Raw) Status                                                                  `sym:"cublasLtMatmulDescDestroy"`
	CreateLayout  func(out *Raw, of Type, rows, columns uint64, ld int64) Status                      `sym:"cublasLtMatrixLayoutCreate"`
	DestroyLayout func(l Raw) Status                                                                  `sym:"cublasLtMatrixLayoutDestroy"`
	CreatePref    func(out *Raw) Status                                                               `sym:"cublasLtMatmulPreferenceCreate"`
	SetPref       func(p Raw, attribute int32, value unsafe.Pointer, n uintptr) Status                `sym:"cublasLtMatmulPreferenceSetAttribute"`
	DestroyPref   func(p Raw) Status                                                                  `sym:"cublasLtMatmulPreferenceDestroy"`
	Heuristic     func(h, desc, a, b, c, d, pref Raw, asked int32, all *Heuristic, got *int32) Status `sym:"cublasLtMatmulAlgoGetHeuristic"`
	Matmul        func(h, desc Raw, alpha *float32, a driver.Pointer, la Raw, b driver.Pointer, lb Raw, beta *float32, c driver.Pointer, lc Raw,
		d driver.Pointer, ld Raw, algo *Algo, room driver.Pointer, n uintptr, s driver.Stream) Status `sym:"cublasLtMatmul"`
}

// Algo is an algorithm, which only the library reads.
type Algo [8]uint64

// Heuristic is an algorithm that the library advises. It is laid out as the library's.
type Heuristic struct {
	Algo   Algo
	Memory uintptr // bytes of workspace
	Status Status
	_      [5]int32
}

// BindLt binds the functions.
func BindLt(h *dynlib.Handle) (*LtAPI, error) {
	a := &LtAPI{}
	return a, dynlib.Bind(a, h)
}

// Attributes of products and of what is wanted of an algorithm.
const (
	descTransA   = 3
	descTransB   = 4
	descEpilogue = 7
	descBias     = 8

	prefMemory    = 1
	prefAlignment = 5 // of A; B, C and D follow
)

// Epilogue is what is done to a product C = A·B before it is written.
type Epilogue int32

const (
	WithBias     Epilogue = 4   // the bias, of C's type, is added to each row
	WithBiasReLU Epilogue = 6   // and what is less than 0 becomes 0
	SumsOfA      Epilogue = 512 // nothing; the sums over K of A, of C's type, are written where a bias would be read
)

// Lt multiplies matrices on one stream. It belongs to one thread.
type Lt struct {
	api       *LtAPI
	h         Raw
	stream    driver.Stream
	room      driver.Pointer
	bytes     int
	one, zero *float32 // in the heap, for the library reads them there
}

// New makes an Lt for a stream of the current context, that works in so many bytes of device memory.
func (a *LtAPI) New(s driver.Stream, room driver.Pointer, bytes int) (*Lt, error) {
	l := &Lt{api: a, stream: s, room: room, bytes: bytes, one: new(float32), zero: new(float32)}
	*l.one = 1
	return l, check(a.Create(&l.h), "cublasLtCreate")
}

// Close gives it back.
func (l *Lt) Close() error { return check(l.api.Destroy(l.h), "cublasLtDestroy") }

func check(s Status, call string) error {
	if s == 0 {
		return nil
	}
	return &Error{Call: call, Status: s, Text: "failed"}
}

// ErrUnsupported says that the library has no algorithm for a product.
var ErrUnsupported = errors.New("cublas: no algorithm does this product with what follows it")

// Matmul is a product of given shapes and what follows it, with an algorithm. The addresses of a Product are only looked at for how they are
// aligned.
type Matmul struct {
	lt            *Lt
	desc, a, b, c Raw
	algo          *Algo
	memory        uintptr
	bias          *driver.Pointer
	name          string
}

// NewMatmul chooses the algorithm that the library advises. The error is ErrUnsupported where it advises none.
func (l *Lt) NewMatmul(p Product, e Epilogue, bias driver.Pointer) (*Matmul, error) {
	m := &Matmul{lt: l, algo: new(Algo), bias: new(driver.Pointer), name: fmt.Sprintf("cublasLtMatmul of %d×%d×%d with epilogue %d", p.M, p.N, p.K, e)}
	*m.bias = bias
	err := m.describe(p, e)
	if err == nil {
		err = m.choose(p)
	}
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// describe tells the library of the shapes. By columns, what is stored is the transpose of each: Cᵀ = Bᵀ·Aᵀ, so that A and B change places.
func (m *Matmul) describe(p Product, e Epilogue) error {
	a := m.lt.api
	layout := func(out *Raw, of Type, rows, columns int) Status {
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
	if err := check(a.CreateDesc(&m.desc, p.Compute, Float32), m.name); err != nil {
		return err
	}
	transA, transB := op(p.TransA), op(p.TransB)
	for _, s := range []Status{
		a.SetDesc(m.desc, descTransA, unsafe.Pointer(&transB), 4), a.SetDesc(m.desc, descTransB, unsafe.Pointer(&transA), 4),
		a.SetDesc(m.desc, descEpilogue, unsafe.Pointer(&e), 4), a.SetDesc(m.desc, descBias, unsafe.Pointer(m.bias), 8),
		layout(&m.a, p.Type, rowsB, columnsB), layout(&m.b, p.Type, rowsA, columnsA), layout(&m.c, p.TypeC, p.M, p.N),
	} {
		if err := check(s, m.name); err != nil {
			return err
		}
	}
	return nil
}

// alignment is how many bytes divide an address, 256 at most.
func alignment(p driver.Pointer) uint32 {
	n := uint32(256)
	for uint64(p)%uint64(n) != 0 {
		n /= 2
	}
	return n
}

// notSupported is what the library says where it has no algorithm.
const notSupported = 15

func (m *Matmul) choose(p Product) error {
	a := m.lt.api
	var pref Raw
	if err := check(a.CreatePref(&pref), m.name); err != nil {
		return err
	}
	memory := uintptr(m.lt.bytes)
	err := check(a.SetPref(pref, prefMemory, unsafe.Pointer(&memory), 8), m.name)
	for i, at := range []driver.Pointer{p.B, p.A, p.C, p.C} {
		n := alignment(at)
		err = errors.Join(err, check(a.SetPref(pref, prefAlignment+int32(i), unsafe.Pointer(&n), 4), m.name))
	}
	var best Heuristic
	got := int32(0)
	if err == nil {
		switch s := a.Heuristic(m.lt.h, m.desc, m.a, m.b, m.c, m.c, pref, 1, &best, &got); {
		case s == notSupported || s == 0 && (got < 1 || best.Status != 0):
			err = ErrUnsupported
		default:
			err = check(s, m.name)
		}
	}
	*m.algo, m.memory = best.Algo, best.Memory
	return errors.Join(err, check(a.DestroyPref(pref), m.name))
}

// Run sends the product to the stream. A bias, or where sums go, is aligned as the one that the algorithm was chosen for.
func (m *Matmul) Run(a, b, c, bias driver.Pointer) error {
	l := m.lt
	*m.bias = bias
	if err := check(l.api.SetDesc(m.desc, descBias, unsafe.Pointer(m.bias), 8), m.name); err != nil {
		return err
	}
	return check(l.api.Matmul(l.h, m.desc, l.one, b, m.a, a, m.b, l.zero, c, m.c, c, m.c, m.algo, l.room, m.memory, l.stream), m.name)
}

// Close gives back what the library keeps of the product.
func (m *Matmul) Close() error {
	a := m.lt.api
	var err error
	if m.desc != 0 {
		err = check(a.DestroyDesc(m.desc), m.name)
	}
	for _, l := range []Raw{m.a, m.b, m.c} {
		if l != 0 {
			err = errors.Join(err, check(a.DestroyLayout(l), m.name))
		}
	}
	m.desc, m.a, m.b, m.c = 0, 0, 0, 0
	return err
}
