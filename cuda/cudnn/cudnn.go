package cudnn

import (
	"fmt"

	"fspda/cuda/driver"
	"fspda/cuda/dynlib"
)

// Status is the status code that every function returns; 0 is success. The other values differ
// between major versions.
type Status int32

// These types are handles of the library.
type (
	Ptr        uintptr // the library's handle for one GPU and one thread
	Tensor     uintptr
	Filter     uintptr
	Descriptor uintptr // convolution descriptor
)

// Type is the element type of a tensor.
type Type int32

const (
	Float32  Type = 0
	Float16  Type = 2
	BFloat16 Type = 9
	Int32    Type = 4
	Boolean  Type = 11
)

// Math says how products may be rounded.
type Math int32

const (
	TensorOp        Math = 1 // 16-bit numbers on tensor cores, float32 as TF32
	AllowConversion Math = 2 // TensorOp where float32 may be rounded to 16 bits first
	FMA             Math = 3 // no rounding of the factors
)

const (
	channelsLast     = 1 // NHWC
	crossCorrelation = 1 // the operation that networks call convolution
)

// Perf is the library's estimate or measurement of an algorithm, in the memory layout of the
// library.
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

// API is the table of the cuDNN functions that this program calls, grouped by topic.
type API struct {
	LibraryAPI
	DescriptorAPI
	ConvolutionAPI
	AlgorithmAPI
	Backend *Backend // nil if the library lacks one of its functions; then only algorithms are used
}

// LibraryAPI manages handles.
type LibraryAPI struct {
	Version     func() uintptr                      `sym:"cudnnGetVersion"`
	ErrorString func(s Status) string               `sym:"cudnnGetErrorString"`
	Create      func(out *Ptr) Status               `sym:"cudnnCreate"`
	Destroy     func(h Ptr) Status                  `sym:"cudnnDestroy"`
	SetStream   func(h Ptr, s driver.Stream) Status `sym:"cudnnSetStream"`
}

// DescriptorAPI describes tensors, filters and convolutions.
type DescriptorAPI struct {
	CreateTensor  func(out *Tensor) Status                                       `sym:"cudnnCreateTensorDescriptor"`
	SetTensor     func(t Tensor, format int32, of Type, n, c, h, w int32) Status `sym:"cudnnSetTensor4dDescriptor"`
	DestroyTensor func(t Tensor) Status                                          `sym:"cudnnDestroyTensorDescriptor"`
	CreateFilter  func(out *Filter) Status                                       `sym:"cudnnCreateFilterDescriptor"`
	SetFilter     func(f Filter, of Type, format int32, k, c, r, s int32) Status `sym:"cudnnSetFilter4dDescriptor"`
	DestroyFilter func(f Filter) Status                                          `sym:"cudnnDestroyFilterDescriptor"`

	CreateConv func(out *Descriptor) Status `sym:"cudnnCreateConvolutionDescriptor"`
	SetConv    func(d Descriptor, padH, padW, strideH, strideW, dilationH, dilationW, mode int32,
		compute Type) Status `sym:"cudnnSetConvolution2dDescriptor"`
	SetMath     func(d Descriptor, m Math) Status `sym:"cudnnSetConvolutionMathType"`
	DestroyConv func(d Descriptor) Status         `sym:"cudnnDestroyConvolutionDescriptor"`
}

// ConvolutionAPI computes convolutions and their gradients by algorithms.
type ConvolutionAPI struct {
	Forward func(h Ptr, alpha *float32, xd Tensor, x driver.Pointer, wd Filter, w driver.Pointer, c Descriptor,
		algo int32, workspace driver.Pointer, n uintptr, beta *float32, yd Tensor,
		y driver.Pointer) Status `sym:"cudnnConvolutionForward"`
	BackwardData func(h Ptr, alpha *float32, wd Filter, w driver.Pointer, dyd Tensor, dy driver.Pointer, c Descriptor,
		algo int32, workspace driver.Pointer, n uintptr, beta *float32, dxd Tensor,
		dx driver.Pointer) Status `sym:"cudnnConvolutionBackwardData"`
	BackwardFilter func(h Ptr, alpha *float32, xd Tensor, x driver.Pointer, dyd Tensor, dy driver.Pointer, c Descriptor,
		algo int32, workspace driver.Pointer, n uintptr, beta *float32, dwd Filter,
		dw driver.Pointer) Status `sym:"cudnnConvolutionBackwardFilter"`
}

// AlgorithmAPI recommends algorithms (Get) and times them (Find).
type AlgorithmAPI struct {
	GetForward func(h Ptr, x Tensor, w Filter, c Descriptor, y Tensor, asked int32, got *int32,
		all *Perf) Status `sym:"cudnnGetConvolutionForwardAlgorithm_v7"`
	GetData func(h Ptr, w Filter, dy Tensor, c Descriptor, dx Tensor, asked int32, got *int32,
		all *Perf) Status `sym:"cudnnGetConvolutionBackwardDataAlgorithm_v7"`
	GetFilter func(h Ptr, x, dy Tensor, c Descriptor, dw Filter, asked int32, got *int32,
		all *Perf) Status `sym:"cudnnGetConvolutionBackwardFilterAlgorithm_v7"`

	FindForward func(h Ptr, xd Tensor, x driver.Pointer, wd Filter, w driver.Pointer, c Descriptor, yd Tensor,
		y driver.Pointer, asked int32, got *int32, all *Perf, workspace driver.Pointer,
		n uintptr) Status `sym:"cudnnFindConvolutionForwardAlgorithmEx"`
	FindData func(h Ptr, wd Filter, w driver.Pointer, dyd Tensor, dy driver.Pointer, c Descriptor, dxd Tensor,
		dx driver.Pointer, asked int32, got *int32, all *Perf, workspace driver.Pointer,
		n uintptr) Status `sym:"cudnnFindConvolutionBackwardDataAlgorithmEx"`
	FindFilter func(h Ptr, xd Tensor, x driver.Pointer, dyd Tensor, dy driver.Pointer, c Descriptor, dwd Filter,
		dw driver.Pointer, asked int32, got *int32, all *Perf, workspace driver.Pointer,
		n uintptr) Status `sym:"cudnnFindConvolutionBackwardFilterAlgorithmEx"`
}

// Bind binds the functions of cuDNN.
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

// Error is a failed call.
type Error struct {
	What   string
	Status Status
	Text   string
}

func (e *Error) Error() string {
	return fmt.Sprintf("cudnn: %s: %s (%d)", e.What, e.Text, int32(e.Status))
}

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

// Handle computes convolutions on one stream. It belongs to one thread.
type Handle struct {
	api *API
	h   Ptr
	// properties of a GPU that is not installed, for plans that are never executed; 0 for a real
	// GPU
	device    Node
	one, zero *float32 // they lie on the heap, because the library reads them there
}

func (a *API) New(s driver.Stream) (*Handle, error) {
	h := &Handle{api: a, one: new(float32), zero: new(float32)}
	*h.one = 1
	if err := a.check(a.Create(&h.h), "starting"); err != nil {
		return nil, err
	}
	return h, a.check(a.SetStream(h.h, s), "choosing a stream")
}

func (h *Handle) Close() error { return h.api.check(h.api.Destroy(h.h), "closing") }
