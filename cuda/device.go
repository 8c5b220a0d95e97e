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
	name       string
	properties driver.Properties
	precision  Precision
	repeats    bool // convolutions give the same bits in each run
	launches   bool // nothing marches
	literal    bool // tests: code is run as it says, and neither gates nor lists are looked for
	owner      *owner
	fleets     fleets
	stores     stores
	peers      peers
	bare       uintptr // bytes that were free when there was nothing but the context
	opened     uintptr // bytes that were free when all was there
	close      sync.Once
	alone      bool // no fleets: for tests of what runs without them
}

var _ device.Ahead = (*Device)(nil)

// parts is what a Device is made of: in tests, some of it lies in host memory.
type parts struct {
	api     *driver.API
	version int
	index   int
	tools   func(p driver.Properties) (tools, error)
	direct  bool // see owner
}

// tools is what NVIDIA's libraries bring.
type tools struct {
	cubins map[string]nvrtc.Binary
	blas   *cublas.API
	lt     *cublas.LtAPI // nil where it lacks functions: then kernels do what follows a product
	dnn    *cudnn.API    // nil where there is none
	noDNN  error         // why
	dir    string        // where the algorithms of convolutions are kept, "" for nowhere
}

// Open opens GPU number index. Where there is no driver or a library is missing, the error says
// which and what to do.
func Open(index int, options ...Option) (*Device, error) {
	finder := dynlib.System()
	lib, err := driver.Open(finder)
	if err != nil {
		return nil, err
	}
	return open(parts{api: lib.ForThread(), version: lib.Version, index: index, tools: func(p driver.Properties) (tools,
		error) {
		found, err := bestToolkit(finder, lib.Version, p.CC)
		if err != nil {
			return tools{}, err
		}
		return found.open(p)
	}}, options...)
}

// open binds the libraries and makes the kernels.
func (t *toolkit) open(p driver.Properties) (l tools, err error) {
	if l.cubins, err = compile(t.nvrtc.handle, p); err != nil {
		return l, err
	}
	if l.blas, err = cublas.Bind(t.cublas.handle); err != nil {
		return l, err
	}
	if lt, err := cublas.BindLt(t.lt.handle); err == nil {
		l.lt = lt
	}
	if l.noDNN = t.cudnn.err; l.noDNN == nil {
		l.dnn, l.noDNN = cudnn.Bind(t.cudnn.handle)
	}
	l.dir, _ = cudnn.DefaultDir() // a user without a folder times them at each start
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

func open(p parts, options ...Option) (*Device, error) {
	d := &Device{name: fmt.Sprintf("cuda:%d", p.index), precision: FP32, owner: newOwner(p.api)}
	for _, o := range options {
		if err := o(d); err != nil {
			return nil, err
		}
	}
	if p.direct {
		d.owner.direct = &sync.Mutex{}
	}
	started := make(chan error)
	go d.owner.run(func() error { return d.start(p) }, started)
	if err := <-started; err != nil {
		return nil, err
	}
	return d, nil
}

func newOwner(api *driver.API) *owner {
	return &owner{api: api, functions: map[*kernels.Kernel]driver.Function{}, execs: map[driver.GraphExec]bool{},
		described: map[described]bool{}, queue: newQueue(), done: make(chan struct{})}
}

// start makes the owner's goroutine ready. What it has taken when it fails is given back.
func (d *Device) start(p parts) (err error) {
	o := d.owner
	defer func() {
		if err != nil {
			err = errors.Join(err, o.shut())
		}
	}()
	n, err := o.api.Count()
	if err != nil {
		return err
	}
	if p.index >= n {
		return fmt.Errorf("cuda: there is no GPU %d: the driver finds %d, from 0 on", p.index, n)
	}
	if err := o.api.Check(o.api.DeviceGet(&o.gpu, int32(p.index)), "cuDeviceGet", "opening GPU %d",
		p.index); err != nil {
		return err
	}
	if d.properties, err = o.api.Describe(o.gpu); err != nil {
		return err
	}
	if err := d.precision.runsOn(d.properties); err != nil {
		return err
	}
	l, err := p.tools(d.properties)
	if err != nil {
		return err
	}
	if err := o.api.Check(o.api.PrimaryCtxRetain(&o.context, o.gpu), "cuDevicePrimaryCtxRetain",
		"taking the context of GPU %d", p.index); err != nil {
		return err
	}
	if err := o.api.Check(o.api.CtxSetCurrent(o.context), "cuCtxSetCurrent", "entering the context of GPU %d",
		p.index); err != nil {
		return err
	}
	var total uintptr
	if err := o.api.Check(o.api.MemGetInfo(&d.bare, &total), "cuMemGetInfo", "asking for the free memory of %s",
		d.name); err != nil {
		return err
	}
	if err := o.api.Check(o.api.StreamCreate(&o.stream, driver.StreamNonBlocking, 0), "cuStreamCreateWithPriority",
		"making a stream"); err != nil {
		return err
	}
	if err := o.api.Check(o.api.StreamCreate(&o.copies, driver.StreamNonBlocking, 0), "cuStreamCreateWithPriority",
		"making a stream"); err != nil {
		return err
	}
	if err := o.load(l.cubins); err != nil {
		return err
	}
	if err := o.useLibraries(l, d.properties.Name); err != nil {
		return err
	}
	if err := d.startMarching(); err != nil {
		return err
	}
	return o.api.Check(o.api.MemGetInfo(&d.opened, &total), "cuMemGetInfo", "asking for the free memory of %s", d.name)
}

// blasWorkspace is the memory that cuBLAS works in, in bytes: what NVIDIA advises for the largest
// GPUs.
const blasWorkspace = 32 << 20

// useLibraries makes handles for the device's stream, on a GPU of some name.
func (o *owner) useLibraries(l tools, gpu string) (err error) {
	if o.blas, err = l.blas.New(o.stream); err != nil {
		return err
	}
	room, err := o.alloc(blasWorkspace)
	if err != nil {
		return err
	}
	if l.lt != nil {
		if o.lt, err = l.lt.New(o.stream, room.at, blasWorkspace); err != nil {
			return err
		}
	}
	o.noDNN = l.noDNN
	if l.dnn != nil {
		if o.dnn, err = l.dnn.New(o.stream); err != nil {
			return err
		}
		o.choices = &cudnn.Choices{Dir: l.dir, GPU: gpu, Version: l.dnn.Version()}
	}
	return o.blas.UseWorkspace(room.at, blasWorkspace)
}

// Name is "cuda:N".
func (d *Device) Name() string { return d.name }

// Properties is what the GPU tells of itself.
func (d *Device) Properties() driver.Properties { return d.properties }

// Memory tells how many bytes of the GPU's memory are free, those of its pool too, and how many
// there are.
func (d *Device) Memory() (free, total uint64, err error) {
	o := d.owner
	err = o.ask(func() error {
		o.collect()
		var f, t uintptr
		if err := o.api.Check(o.api.MemGetInfo(&f, &t), "cuMemGetInfo", "asking for the free memory of %s",
			d.name); err != nil {
			return err
		}
		free, total = uint64(f)+uint64(o.pool.idle()), uint64(t)
		return nil
	})
	return free, total, err
}

// RunsAhead is true: operations return when they are sent.
func (d *Device) RunsAhead() bool { return true }

// Err is the failure after which the device does nothing any more, or nil.
func (d *Device) Err() error { return d.owner.err() }

// Close waits for the GPU and gives back all that was taken of it. Vectors and Programs of the
// device must not be used any more.
func (d *Device) Close() error {
	var err error
	d.close.Do(func() {
		end := make(chan error, 1)
		d.owner.submit(item{task: func() {
			d.owner.settle()
			end <- d.owner.shut()
		}})
		err = <-end
		d.owner.queue.close()
		<-d.owner.done
	})
	return err
}

// shut gives everything back. After a loss of the device all of it is gone, and the driver's
// complaints of that are not worth telling.
func (o *owner) shut() error {
	if o.stuck { // the end of the program gives everything back
		return nil
	}
	lost := o.err() != nil
	var errs []error
	note := func(r driver.Result, call string) {
		if !lost {
			errs = append(errs, o.api.Check(r, call, "closing the GPU"))
		}
	}
	for _, s := range []driver.Stream{o.copies, o.stream} {
		if s != 0 {
			note(o.api.StreamSynchronize(s), "cuStreamSynchronize")
		}
	}
	for e := range o.execs {
		note(o.api.GraphExecDestroy(e), "cuGraphExecDestroy")
	}
	for x := range o.described {
		if !lost {
			errs = append(errs, x.Close())
		}
	}
	clear(o.described)
	if o.blas != nil && !lost {
		errs = append(errs, o.blas.Close())
	}
	if o.lt != nil && !lost {
		errs = append(errs, o.lt.Close())
	}
	if o.dnn != nil && !lost {
		errs = append(errs, o.dnn.Close())
	}
	for _, e := range o.made {
		note(o.api.EventDestroy(e), "cuEventDestroy")
	}
	for _, b := range o.pool.every() {
		note(o.api.MemFree(b), "cuMemFree")
	}
	for _, p := range o.pinned.all {
		note(o.api.MemFreeHost(p), "cuMemFreeHost")
	}
	for _, m := range o.modules {
		note(o.api.ModuleUnload(m), "cuModuleUnload")
	}
	for _, s := range []driver.Stream{o.copies, o.stream} {
		if s != 0 {
			note(o.api.StreamDestroy(s), "cuStreamDestroy")
		}
	}
	if o.context != 0 {
		note(o.api.CtxSetCurrent(0), "cuCtxSetCurrent")
		note(o.api.PrimaryCtxRelease(o.gpu), "cuDevicePrimaryCtxRelease")
	}
	o.stream, o.copies, o.context, o.modules, o.events, o.made = 0, 0, 0, nil, nil, nil
	if o.failure.Load() == nil {
		o.fail(errClosed)
	}
	return errors.Join(errs...)
}

var errClosed = errors.New("cuda: the device is closed")
