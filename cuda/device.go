package cuda

import (
	"errors"
	"fmt"
	"sync"

	"fspda/cuda/cublas"
	"fspda/cuda/cudnn"
	"fspda/cuda/driver"
	"fspda/cuda/dynlib"
	"fspda/cuda/kernels"
	"fspda/cuda/nvrtc"
	"fspda/device"
)

// Device is an NVIDIA GPU. Any number of goroutines may use one.
type Device struct {
	name             string
	properties       driver.Properties
	precision        Precision
	deterministic    bool // convolutions give the same bits in each run
	separateLaunches bool // nothing marches
	noFusion         bool // tests: code is run as it says, and neither gates nor lists are looked for
	exec             *executor
	groups           groups
	datasets         datasets
	peers            peers
	freeWithContext  uintptr // bytes that were free when there was nothing but the context
	freeWhenOpen     uintptr // bytes that were free when all was there
	closeOnce        sync.Once
	noGroups         bool // no fleets: for tests of what runs without them
}

var _ device.AsyncDevice = (*Device)(nil)

// parts is what a Device is made of: in tests, some of it lies in host memory.
type backend struct {
	api       *driver.API
	version   int
	index     int
	libraries func(p driver.Properties) (libraries, error)
	inline    bool // see owner
}

// tools is what NVIDIA's libraries bring.
type libraries struct {
	cubins     map[string]nvrtc.Binary
	blas       *cublas.API
	lt         *cublas.LtAPI // nil where it lacks functions: then kernels do what follows a product
	dnn        *cudnn.API    // nil where there is none
	dnnErr     error         // why
	choicesDir string        // where the algorithms of convolutions are kept, "" for nowhere
}

// Open opens GPU number index. Where there is no driver or a library is missing, the error says
// which and what to do.
func Open(index int, options ...Option) (*Device, error) {
	finder := dynlib.System()
	lib, err := driver.Open(finder)
	if err != nil {
		return nil, err
	}
	return open(backend{api: lib.ForThread(), version: lib.Version, index: index, libraries: func(p driver.Properties) (libraries,
		error) {
		found, err := bestToolkit(finder, lib.Version, p.CC)
		if err != nil {
			return libraries{}, err
		}
		return found.open(p)
	}}, options...)
}

// open binds the libraries and makes the kernels.
func (t *toolkit) open(p driver.Properties) (l libraries, err error) {
	if l.cubins, err = compile(t.nvrtc.handle, p); err != nil {
		return l, err
	}
	if l.blas, err = cublas.Bind(t.cublas.handle); err != nil {
		return l, err
	}
	if lt, err := cublas.BindLt(t.lt.handle); err == nil {
		l.lt = lt
	}
	if l.dnnErr = t.cudnn.err; l.dnnErr == nil {
		l.dnn, l.dnnErr = cudnn.Bind(t.cudnn.handle)
	}
	l.choicesDir, _ = cudnn.DefaultDir() // a user without a folder times them at each start
	return l, nil
}

// compile makes the kernels, or takes them from the user's cache.
func compile(h *dynlib.Handle, p driver.Properties) (map[string]nvrtc.Binary, error) {
	l, err := nvrtc.Open(h)
	if err != nil {
		return nil, err
	}
	if !l.Supports(p.Arch()) {
		return nil, fmt.Errorf("cuda: NVRTC %d.%d (%s) makes no code for %s, which is %s: install another version of CUDA's libraries", l.Major, l.Minor, l.Path, p.Name, p.Arch())
	}
	dir, err := nvrtc.DefaultDir()
	if err != nil { // a user without a folder compiles at each start
		return kernels.Compile(l, nil, p.Arch())
	}
	return kernels.Compile(l, l.Cache(dir), p.Arch())
}

func open(p backend, options ...Option) (*Device, error) {
	d := &Device{name: fmt.Sprintf("cuda:%d", p.index), precision: FP32, exec: newExecutor(p.api)}
	for _, o := range options {
		if err := o(d); err != nil {
			return nil, err
		}
	}
	if p.inline {
		d.exec.inline = &sync.Mutex{}
	}
	started := make(chan error)
	go d.exec.run(func() error { return d.start(p) }, started)
	if err := <-started; err != nil {
		return nil, err
	}
	return d, nil
}

func newExecutor(api *driver.API) *executor {
	return &executor{api: api, functions: map[*kernels.Kernel]driver.Function{}, graphs: map[driver.GraphExec]bool{},
		closers: map[closer]bool{}, inbox: newInbox(), ended: make(chan struct{})}
}

// start makes the owner's goroutine ready. What it has taken when it fails is given back.
func (d *Device) start(p backend) (err error) {
	ex := d.exec
	defer func() {
		if err != nil {
			err = errors.Join(err, ex.shutdown())
		}
	}()
	n, err := ex.api.Count()
	if err != nil {
		return err
	}
	if p.index >= n {
		return fmt.Errorf("cuda: there is no GPU %d: the driver finds %d, from 0 on", p.index, n)
	}
	if err := ex.api.Check(ex.api.DeviceGet(&ex.gpu, int32(p.index)), "cuDeviceGet", "opening GPU %d",
		p.index); err != nil {
		return err
	}
	if d.properties, err = ex.api.Describe(ex.gpu); err != nil {
		return err
	}
	if err := checkPrecision(d.precision, d.properties); err != nil {
		return err
	}
	l, err := p.libraries(d.properties)
	if err != nil {
		return err
	}
	if err := ex.api.Check(ex.api.PrimaryCtxRetain(&ex.context, ex.gpu), "cuDevicePrimaryCtxRetain",
		"taking the context of GPU %d", p.index); err != nil {
		return err
	}
	if err := ex.api.Check(ex.api.CtxSetCurrent(ex.context), "cuCtxSetCurrent", "entering the context of GPU %d",
		p.index); err != nil {
		return err
	}
	var total uintptr
	if err := ex.api.Check(ex.api.MemGetInfo(&d.freeWithContext, &total), "cuMemGetInfo", "asking for the free memory of %s",
		d.name); err != nil {
		return err
	}
	if err := ex.api.Check(ex.api.StreamCreate(&ex.stream, driver.StreamNonBlocking, 0), "cuStreamCreateWithPriority",
		"making a stream"); err != nil {
		return err
	}
	if err := ex.api.Check(ex.api.StreamCreate(&ex.copyStream, driver.StreamNonBlocking, 0), "cuStreamCreateWithPriority",
		"making a stream"); err != nil {
		return err
	}
	if err := ex.loadModules(l.cubins); err != nil {
		return err
	}
	if err := ex.openLibraries(l, d.properties.Name); err != nil {
		return err
	}
	if err := d.startMegakernel(); err != nil {
		return err
	}
	return ex.api.Check(ex.api.MemGetInfo(&d.freeWhenOpen, &total), "cuMemGetInfo", "asking for the free memory of %s", d.name)
}

// blasWorkspace is the memory that cuBLAS works in, in bytes: what NVIDIA advises for the largest
// GPUs.
const blasWorkspace = 32 << 20

// useLibraries makes handles for the device's stream, on a GPU of some name.
func (ex *executor) openLibraries(l libraries, gpu string) (err error) {
	if ex.blas, err = l.blas.New(ex.stream); err != nil {
		return err
	}
	room, err := ex.alloc(blasWorkspace)
	if err != nil {
		return err
	}
	if l.lt != nil {
		if ex.lt, err = l.lt.New(ex.stream, room.at, blasWorkspace); err != nil {
			return err
		}
	}
	ex.dnnErr = l.dnnErr
	if l.dnn != nil {
		if ex.dnn, err = l.dnn.New(ex.stream); err != nil {
			return err
		}
		ex.choices = &cudnn.ChoiceCache{Dir: l.choicesDir, GPU: gpu, Version: l.dnn.Version()}
	}
	return ex.blas.UseWorkspace(room.at, blasWorkspace)
}

// Name is "cuda:N".
func (d *Device) Name() string { return d.name }

// Properties is what the GPU tells of itself.
func (d *Device) Properties() driver.Properties { return d.properties }

// Memory tells how many bytes of the GPU's memory are free, those of its pool too, and how many
// there are.
func (d *Device) Memory() (free, total uint64, err error) {
	ex := d.exec
	err = ex.do(func() error {
		ex.collectGarbage()
		var f, t uintptr
		if err := ex.api.Check(ex.api.MemGetInfo(&f, &t), "cuMemGetInfo", "asking for the free memory of %s",
			d.name); err != nil {
			return err
		}
		free, total = uint64(f)+uint64(ex.pool.freeBytes()), uint64(t)
		return nil
	})
	return free, total, err
}

// Async is true: operations return when they are sent.
func (d *Device) Async() bool { return true }

// Err is the failure after which the device does nothing any more, or nil.
func (d *Device) Err() error { return d.exec.err() }

// Close waits for the GPU and gives back all that was taken of it. Vectors and Programs of the
// device must not be used any more.
func (d *Device) Close() error {
	var err error
	d.closeOnce.Do(func() {
		end := make(chan error, 1)
		d.exec.post(item{task: func() {
			d.exec.drain()
			end <- d.exec.shutdown()
		}})
		err = <-end
		d.exec.inbox.close()
		<-d.exec.ended
	})
	return err
}

// shut gives everything back. After a loss of the device all of it is gone, and the driver's
// complaints of that are not worth telling.
func (ex *executor) shutdown() error {
	if ex.hung { // the end of the program gives everything back
		return nil
	}
	lost := ex.err() != nil
	var errs []error
	note := func(r driver.Result, call string) {
		if !lost {
			errs = append(errs, ex.api.Check(r, call, "closing the GPU"))
		}
	}
	for _, s := range []driver.Stream{ex.copyStream, ex.stream} {
		if s != 0 {
			note(ex.api.StreamSynchronize(s), "cuStreamSynchronize")
		}
	}
	for e := range ex.graphs {
		note(ex.api.GraphExecDestroy(e), "cuGraphExecDestroy")
	}
	for x := range ex.closers {
		if !lost {
			errs = append(errs, x.Close())
		}
	}
	clear(ex.closers)
	if ex.blas != nil && !lost {
		errs = append(errs, ex.blas.Close())
	}
	if ex.lt != nil && !lost {
		errs = append(errs, ex.lt.Close())
	}
	if ex.dnn != nil && !lost {
		errs = append(errs, ex.dnn.Close())
	}
	for _, e := range ex.allEvents {
		note(ex.api.EventDestroy(e), "cuEventDestroy")
	}
	for _, b := range ex.pool.takeAll() {
		note(ex.api.MemFree(b), "cuMemFree")
	}
	for _, p := range ex.pinned.all {
		note(ex.api.MemFreeHost(p), "cuMemFreeHost")
	}
	for _, m := range ex.modules {
		note(ex.api.ModuleUnload(m), "cuModuleUnload")
	}
	for _, s := range []driver.Stream{ex.copyStream, ex.stream} {
		if s != 0 {
			note(ex.api.StreamDestroy(s), "cuStreamDestroy")
		}
	}
	if ex.context != 0 {
		note(ex.api.CtxSetCurrent(0), "cuCtxSetCurrent")
		note(ex.api.PrimaryCtxRelease(ex.gpu), "cuDevicePrimaryCtxRelease")
	}
	ex.stream, ex.copyStream, ex.context, ex.modules, ex.idleEvents, ex.allEvents = 0, 0, 0, nil, nil, nil
	if ex.failure.Load() == nil {
		ex.fail(errClosed)
	}
	return errors.Join(errs...)
}

var errClosed = errors.New("cuda: the device is closed")
