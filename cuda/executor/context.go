package executor

import (
	"fmt"
	"runtime"
	"unsafe"

	"fspda/cuda/driver"
	"fspda/cuda/kernels"
	"fspda/cuda/nvrtc"
)

// FindGPU opens GPU number index of the driver, without a context.
func (ex *Executor) FindGPU(index int) error {
	n, err := ex.API.Count()
	if err != nil {
		return err
	}
	if index >= n {
		return fmt.Errorf("cuda: there is no GPU %d: the driver finds %d, numbered from 0", index, n)
	}
	return ex.API.Check(ex.API.DeviceGet(&ex.GPU, int32(index)), "cuDeviceGet", "opening GPU %d", index)
}

// EnterContext takes the primary context of the GPU, which has number index.
func (ex *Executor) EnterContext(index int) error {
	if err := ex.API.Check(ex.API.PrimaryCtxRetain(&ex.Context, ex.GPU), "cuDevicePrimaryCtxRetain",
		"taking the context of GPU %d", index); err != nil {
		return err
	}
	return ex.API.Check(ex.API.CtxSetCurrent(ex.Context), "cuCtxSetCurrent", "entering the context of GPU %d", index)
}

// CreateStreams creates the two streams.
func (ex *Executor) CreateStreams() (err error) {
	for _, s := range []*driver.Stream{&ex.Stream, &ex.CopyStream} {
		if *s, err = ex.createStream(); err != nil {
			return err
		}
	}
	ex.home = ex.Stream
	return nil
}

func (ex *Executor) createStream() (s driver.Stream, err error) {
	return s, ex.API.Check(ex.API.StreamCreate(&s, driver.StreamNonBlocking, 0), "cuStreamCreateWithPriority",
		"making a stream")
}

// NewStream creates a stream besides the two. It lives as long as the executor.
func (ex *Executor) NewStream() (s driver.Stream, err error) {
	if s, err = ex.createStream(); err == nil {
		ex.others = append(ex.others, s)
	}
	return s, err
}

// On has everything that send sends go to another stream. Graphs are captured as ever. Blocks that
// send gives back must not be taken before the executor's own stream waits for the other one.
func (ex *Executor) On(s driver.Stream, send func() error) error {
	ex.Stream = s
	defer func() { ex.Stream = ex.home }()
	return send()
}

// loadedKernels is the kernels of a context.
type loadedKernels struct {
	modules   []driver.Module
	functions map[*kernels.Kernel]driver.Function
	args      []unsafe.Pointer // the arguments of a launch; kept because its memory is used again
}

// LoadModules loads the kernels, unit by unit. shared is the most bytes of shared memory that
// a kernel may be given.
func (ex *Executor) LoadModules(cubins map[string]nvrtc.Binary, shared int) error {
	modules := map[string]driver.Module{}
	for unit, b := range cubins {
		if len(b.Cubin) == 0 {
			return fmt.Errorf("cuda: the code of %s is empty", unit)
		}
		var m driver.Module
		r := ex.API.ModuleLoadData(&m, unsafe.Pointer(&b.Cubin[0]), 0, nil, nil)
		runtime.KeepAlive(b.Cubin)
		if err := ex.API.Check(r, "cuModuleLoadDataEx", "loading the kernels of %s", unit); err != nil {
			return err
		}
		ex.loaded.modules = append(ex.loaded.modules, m)
		modules[unit] = m
	}
	ex.loaded.functions = map[*kernels.Kernel]driver.Function{}
	for _, k := range kernels.All() {
		var f driver.Function
		name := append([]byte(k.Name), 0)
		if err := ex.API.Check(ex.API.ModuleGetFunction(&f, modules[k.Unit], &name[0]), "cuModuleGetFunction",
			"looking for kernel %s of %s", k.Name, k.Unit); err != nil {
			return err
		}
		if k.MaxShared > 0 && k.MaxShared <= shared { // others cannot be launched
			r := ex.API.FuncSetAttribute(f, driver.MaxDynamicShared, int32(k.MaxShared))
			if err := ex.API.Check(r, "cuFuncSetAttribute", "giving kernel %s %d bytes of shared memory", k.Name,
				k.MaxShared); err != nil {
				return err
			}
		}
		ex.loaded.functions[k] = f
	}
	return nil
}

// Launch sends kernels to the stream, one after the other.
func (ex *Executor) Launch(calls ...kernels.Call) error {
	for i := range calls {
		c := &calls[i]
		if c.Empty() {
			continue
		}
		f, ok := ex.loaded.functions[c.Kernel]
		if !ok {
			return fmt.Errorf("cuda: kernel %s of %s is not loaded", c.Kernel.Name, c.Kernel.Unit)
		}
		args := ex.loaded.args[:0]
		for j := range c.Args {
			args = append(args, unsafe.Pointer(&c.Args[j]))
		}
		ex.loaded.args = args
		launch, function := ex.API.LaunchKernel, "cuLaunchKernel"
		if c.Cooperative {
			if ex.API.LaunchCooperative == nil {
				return fmt.Errorf("cuda: launching %s: the driver has no cooperative launches: update it",
					c.Kernel.Name)
			}
			launch, function = ex.API.LaunchCooperative, "cuLaunchCooperativeKernel"
		}
		r := launch(f, c.Grid, c.Block, c.Shared, ex.Stream, args)
		runtime.KeepAlive(c.Args)
		// checked here: the arguments of Check would be allocated for every launch
		if r != driver.Success {
			return ex.API.Check(r, function, "launching %v", c)
		}
	}
	return nil
}
