package cudnn

import (
	"fmt"

	"fspda/cuda/driver"
	"fspda/cuda/dynlib"
)

// Status is what every function returns: 0 for success. The others differ from one major version to
// the next.
type Status int32

// Handles of the library.
type (
	Raw        uintptr // the library's state for one GPU and one thread
	Tensor     uintptr
	Filter     uintptr
	Descriptor uintptr // of a convolution
)

// Type is the type of the numbers of a tensor.
type Type int32

const (
	Float32  Type = 0
	Float16  Type = 2
	BFloat16 Type = 9
)

// Math is how products may be rounded.
type Math int32

const (
	TensorOp        Math = 1 // 16-bit numbers on tensor cores, or float32 as TF32
	AllowConversion Math = 2 // that, of numbers that are rounded to 16 bits first
	FMA             Math = 3 // as they are
)

const (
	channelsLast     = 1 // NHWC
	crossCorrelation = 1 // what networks call a convolution
)

// Perf is how an algorithm is expected to do. It is laid out as the library's.
type Perf struct {
	Algo          int32
	Status        Status
	Time          float32 // ms
	_             int32
	Memory        uintptr // bytes of workspace
	Deterministic int32
	Math          Math
	_             [4]int32
}

// API is the functions that are used.
type API struct {
	Backend *Backend // nil where the library lacks one of them: then there are algorithms only

	Version     func() uintptr                      `sym:"cudnnGetVersion"`
	ErrorString func(s Status) string               `sym:"cudnnGetErrorString"`
	Create      func(out *Raw) Status               `sym:"cudnnCreate"`
	Destroy     func(h Raw) Status                  `sym:"cudnnDestroy"`
	SetStream   func(h Raw, s driver.Stream) Status `sym:"cudnnSetStream"`

	CreateTensor func(out *Tensor) Status `sym:"cudnnCreateTensorDescriptor"`
	SetTensor    func(t Tensor, format int32, of Type, n, c, h,
		w int32) Status `sym:"cudnnSetTensor4dDescriptor"`
	DestroyTensor func(t Tensor) Status    `sym:"cudnnDestroyTensorDescriptor"`
	CreateFilter  func(out *Filter) Status `sym:"cudnnCreateFilterDescriptor"`
	SetFilter     func(f Filter, of Type, format int32, k, c, r,
		s int32) Status `sym:"cudnnSetFilter4dDescriptor"`
	DestroyFilter func(f Filter) Status        `sym:"cudnnDestroyFilterDescriptor"`
	CreateConv    func(out *Descriptor) Status `sym:"cudnnCreateConvolutionDescriptor"`
	SetConv       func(d Descriptor, padH, padW, strideH, strideW, dilationH, dilationW, mode int32,
		compute Type) Status `sym:"cudnnSetConvolution2dDescriptor"`
	SetMath func(d Descriptor,
		m Math) Status `sym:"cudnnSetConvolutionMathType"`
	DestroyConv func(d Descriptor) Status `sym:"cudnnDestroyConvolutionDescriptor"`

	Forward func(h Raw, alpha *float32, xd Tensor, x driver.Pointer, wd Filter, w driver.Pointer, c Descriptor,
		algo int32, room driver.Pointer, n uintptr, beta *float32, yd Tensor, y driver.Pointer) Status `sym:"cudnnConvolutionForward"`
	BackwardData func(h Raw, alpha *float32, wd Filter, w driver.Pointer, dyd Tensor, dy driver.Pointer, c Descriptor,
		algo int32, room driver.Pointer, n uintptr, beta *float32, dxd Tensor, dx driver.Pointer) Status `sym:"cudnnConvolutionBackwardData"`
	BackwardFilter func(h Raw, alpha *float32, xd Tensor, x driver.Pointer, dyd Tensor, dy driver.Pointer, c Descriptor,
		algo int32, room driver.Pointer, n uintptr, beta *float32, dwd Filter, dw driver.Pointer) Status `sym:"cudnnConvolutionBackwardFilter"`

	AlgorithmsForward func(h Raw, x Tensor, w Filter, c Descriptor, y Tensor, asked int32, got *int32,
		all *Perf) Status `sym:"cudnnGetConvolutionForwardAlgorithm_v7"`
	AlgorithmsData func(h Raw, w Filter, dy Tensor, c Descriptor, dx Tensor, asked int32, got *int32,
		all *Perf) Status `sym:"cudnnGetConvolutionBackwardDataAlgorithm_v7"`
	AlgorithmsFilter func(h Raw, x, dy Tensor, c Descriptor, dw Filter, asked int32, got *int32,
		all *Perf) Status `sym:"cudnnGetConvolutionBackwardFilterAlgorithm_v7"`

	FindForward func(h Raw, xd Tensor, x driver.Pointer, wd Filter, w driver.Pointer, c Descriptor, yd Tensor,
		y driver.Pointer, asked int32, got *int32, all *Perf, room driver.Pointer, n uintptr) Status `sym:"cudnnFindConvolutionForwardAlgorithmEx"`
	FindData func(h Raw, wd Filter, w driver.Pointer, dyd Tensor, dy driver.Pointer, c Descriptor, dxd Tensor,
		dx driver.Pointer, asked int32, got *int32, all *Perf, room driver.Pointer, n uintptr) Status `sym:"cudnnFindConvolutionBackwardDataAlgorithmEx"`
	FindFilter func(h Raw, xd Tensor, x driver.Pointer, dyd Tensor, dy driver.Pointer, c Descriptor, dwd Filter,
		dw driver.Pointer, asked int32, got *int32, all *Perf, room driver.Pointer, n uintptr) Status `sym:"cudnnFindConvolutionBackwardFilterAlgorithmEx"`
}

// Bind binds the functions.
func Bind(h *dynlib.Handle) (*API, error) {
	a := &API{}
	if err := dynlib.Bind(a, h); err != nil {
		return nil, err
	}
	if b := (&Backend{}); dynlib.Bind(b, h) == nil {
		a.Backend = b
	}
	return a, nil
}

// Error is a call that failed.
type Error struct {
	What   string
	Status Status
	Text   string
}

func (e *Error) Error() string {
	return fmt.Sprintf("cudnn: %s: %s (%d)", e.What, e.Text, int32(e.Status))
}

// check makes an error of a status that is not success.
func (a *API) check(s Status, what string, args ...any) error {
	if s == 0 {
		return nil
	}
	e := &Error{What: fmt.Sprintf(what, args...), Status: s, Text: "failed"}
	if a.ErrorString != nil {
		e.Text = a.ErrorString(s)
	}
	return e
}

// Handle convolves on one stream. It belongs to one thread.
type Handle struct {
	api       *API
	h         Raw
	device    Node     // instead of a GPU: the properties of one, for plans that are made and not executed
	one, zero *float32 // in the heap, for the library reads them there
}

// New makes a Handle for a stream of the current context.
func (a *API) New(s driver.Stream) (*Handle, error) {
	h := &Handle{api: a, one: new(float32), zero: new(float32)}
	*h.one = 1
	if err := a.check(a.Create(&h.h), "starting"); err != nil {
		return nil, err
	}
	return h, a.check(a.SetStream(h.h, s), "choosing a stream")
}

// Close gives the handle back.
func (h *Handle) Close() error { return h.api.check(h.api.Destroy(h.h), "closing") }
