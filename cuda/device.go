package cuda

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"fspda/cuda/driver"
	"fspda/cuda/dynlib"
	"fspda/cuda/executor"
	"fspda/cuda/kernels"
	"fspda/cuda/megakernel"
	"fspda/cuda/orthogonal"
	"fspda/device"
)

// Device is an NVIDIA GPU. Any number of goroutines may use one.
type Device struct {
	name       string
	properties driver.Properties
	settings
	exec       *executor.Executor
	mega       *megakernel.Megakernel // nil where each kernel has a launch of its own
	handles    handles
	branches   branches
	arena      sharedArena
	sampler    sampler
	groups     groups
	datasets   datasets
	orthogonal *orthogonal.Orthogonalizer // nil: not used yet; only the executor uses it
	matrices   listCache[device.Orthogonal]
	ranges     listCache[device.Range]
	peers      peers
	overheads  overheads
	uploads    chan struct{} // see maxUploads
	closeOnce  sync.Once

	freeWithContext uintptr // bytes that were free with nothing but the context
	freeWhenOpen    uintptr // bytes that were free when the device had been opened
}

// settings holds the values that options set.
type settings struct {
	precision        Precision
	deterministic    bool // convolutions give the same bits in each run
	separateLaunches bool // no megakernel
	noFusion         bool // tests: programs run the calls of their code as they are
	noGroups         bool // tests: each gradient has launches of its own
	lossPiece        int  // tests: the most bytes of the logits of a piece, see compiler.Options
}

// backend is the driver and the libraries of a Device. In tests they are fakes in host memory.
type backend struct {
	api       *driver.API
	version   int
	index     int // the number of the GPU, as the driver counts
	libraries func(p driver.Properties) (libraries, error)
	inline    bool // see executor.New
}

// Open opens GPU number index. Where there is no driver or a library is missing, the error names it
// and says how to install it.
func Open(index int, options ...Option) (*Device, error) {
	finder := dynlib.System()
	lib, err := driver.Open(finder)
	if err != nil {
		return nil, err
	}
	find := func(p driver.Properties) (libraries, error) {
		found, err := bestToolkit(finder, lib.Version, p.CC)
		if err != nil {
			return libraries{}, err
		}
		return found.open(p)
	}
	return open(backend{api: lib.ForThread(), version: lib.Version, index: index, libraries: find}, options...)
}

func open(b backend, options ...Option) (*Device, error) {
	if os.Getenv(driver.LaunchBlockingVariable) == "1" {
		b.api = driver.BlockLaunches(b.api)
	}
	d := &Device{name: fmt.Sprintf("cuda:%d", b.index), settings: settings{precision: FP32},
		exec: executor.New(b.api, b.inline), uploads: make(chan struct{}, maxUploads)}
	for _, o := range options {
		if err := o(d); err != nil {
			return nil, err
		}
	}
	if err := d.exec.Start(func() error { return d.start(b) }); err != nil {
		return nil, err
	}
	return d, nil
}

// start opens the GPU and the libraries, on the executor. Where it fails it gives everything back.
func (d *Device) start(b backend) (err error) {
	ex := d.exec
	defer func() {
		if err != nil {
			err = errors.Join(err, d.shutdown())
		}
	}()
	if err := ex.FindGPU(b.index); err != nil {
		return err
	}
	if d.properties, err = ex.API.Describe(ex.GPU); err != nil {
		return err
	}
	if err := checkPrecision(d.precision, d.properties); err != nil {
		return err
	}
	l, err := b.libraries(d.properties)
	if err != nil {
		return err
	}
	if err := ex.EnterContext(b.index); err != nil {
		return err
	}
	if d.freeWithContext, _, err = ex.FreeMemory(); err != nil {
		return err
	}
	if err := ex.CreateStreams(); err != nil {
		return err
	}
	if err := ex.LoadModules(l.cubins, d.properties.Shared); err != nil {
		return err
	}
	if err := d.openHandles(l); err != nil {
		return err
	}
	if d.hasCooperativeLaunches() {
		if d.mega, err = megakernel.Start(ex, d.properties.Multiprocessors); err != nil {
			return err
		}
	}
	if path := os.Getenv(megakernel.ProfileVariable); path != "" && d.mega != nil {
		if err = d.mega.StartProfile(path, d.properties.Name, d.properties.ClockRate); err != nil {
			return err
		}
	}
	d.openOverheads(l.memoryDir, b.version, l.dnn)
	d.freeWhenOpen, _, err = ex.FreeMemory()
	return err
}

// hasCooperativeLaunches reports whether the GPU has cooperative launches, and the shared memory of
// the megakernel, and the settings allow them.
func (d *Device) hasCooperativeLaunches() bool {
	return !d.separateLaunches && os.Getenv(executor.SeparateLaunchesVariable) == "" && d.properties.Cooperative &&
		d.properties.Shared >= kernels.MegakernelShared && d.exec.API.LaunchCooperative != nil
}

func (d *Device) Name() string { return d.name }

// Properties returns the driver's description of the GPU.
func (d *Device) Properties() driver.Properties { return d.properties }

// Memory returns how many bytes of the GPU's memory are free, including free blocks of the device's
// pool, and how many there are.
func (d *Device) Memory() (free, total uint64, err error) {
	ex := d.exec
	err = ex.Do(func() error {
		ex.CollectGarbage()
		f, t, err := ex.FreeMemory()
		free, total = uint64(f)+uint64(ex.FreeBlockBytes()), uint64(t)
		return err
	})
	return free, total, err
}

// Features lists the abilities of a GPU, whose operations return when they are queued.
func (d *Device) Features() device.Features {
	return device.Features{Async: true, Memory: d, Sampler: d, Scaler: d, Fetch: d.Fetch}
}

// Err returns the failure after which the device does nothing any more, or nil.
func (d *Device) Err() error { return d.exec.Err() }

// Lost reports whether an error says that a GPU is lost: nothing works on it any more in this
// process.
func Lost(err error) bool { return driver.Lost(err) }

// Close waits for the GPU and gives back all that was taken of it. Vectors and Programs of the
// device must not be used any more.
func (d *Device) Close() error {
	var err error
	d.closeOnce.Do(func() { err = d.exec.Stop(d.shutdown) })
	return err
}

// shutdown closes the handles and the executor's context, on the executor.
func (d *Device) shutdown() error {
	return errors.Join(d.mega.WriteProfile(), d.exec.Shutdown(d.handles.all()...))
}
