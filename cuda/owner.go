package cuda

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"fspda/cuda/cublas"
	"fspda/cuda/cudnn"
	"fspda/cuda/driver"
	"fspda/cuda/kernels"
)

// owner is the goroutine that has a GPU's context on its thread, and what only it may touch.
type owner struct {
	api       *driver.API
	gpu       driver.Device
	context   driver.Context
	stream    driver.Stream
	functions map[*kernels.Kernel]driver.Function
	modules   []driver.Module
	pool      pool
	arena     block // what Programs compute in, one after the other
	blas      *cublas.Handle
	dnn       *cudnn.Handle // nil where there is none
	noDNN     error         // why
	choices   *cudnn.Choices
	pinned    pinned
	events    []driver.Event // idle
	execs     map[driver.GraphExec]bool
	pending   []pending
	slots     []unsafe.Pointer

	tasks  chan func()
	done   chan struct{} // closed when the goroutine has ended
	direct *sync.Mutex   // not nil: there is no goroutine, and whoever has a task does it; for tests with very many small tasks

	garbage struct { // what the collector found; the owner takes it when it needs memory
		sync.Mutex
		blocks []block
		execs  []driver.GraphExec
		convs  []cudnn.Conv
	}
	failure atomic.Pointer[error]
}

// pending is what happens on the host once the GPU has come to a place in its work.
type pending struct {
	event driver.Event
	then  func()
}

// taskQueue is how much work may wait for the owner before a sender has to wait.
const taskQueue = 256

// run is the goroutine. start is its first task: where it fails there is no second.
func (o *owner) run(start func() error, started chan<- error) {
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
	defer close(o.done)
	err := start()
	started <- err
	if err != nil {
		return
	}
	if o.direct != nil {
		<-o.tasks // until it is closed
		return
	}
	for {
		if len(o.pending) == 0 {
			task, open := <-o.tasks
			if !open {
				return
			}
			task()
			continue
		}
		o.serve()
	}
}

// spins is how often the GPU is asked whether it has come to an event before the owner rests in between.
const spins = 2000

// serve does tasks while the GPU has something to tell.
func (o *owner) serve() {
	for i := 0; len(o.pending) > 0; i++ {
		select {
		case task, open := <-o.tasks:
			if !open {
				o.settle()
				return
			}
			task()
			i = 0
		default:
			if o.poll() {
				i = 0
			} else if i > spins {
				time.Sleep(20 * time.Microsecond)
			}
		}
	}
}

// poll asks for the oldest event, and does what waits for it.
func (o *owner) poll() bool {
	p := o.pending[0]
	r := o.api.EventQuery(p.event)
	if r == driver.NotReady {
		return false
	}
	o.fail(o.api.Check(r, "cuEventQuery", "waiting for the GPU"))
	o.pending = o.pending[1:]
	o.events = append(o.events, p.event)
	p.then()
	return true
}

// settle waits for all that the GPU has still to do.
func (o *owner) settle() {
	for i := 0; len(o.pending) > 0; i++ {
		if o.poll() {
			i = 0
		} else if i > spins {
			time.Sleep(20 * time.Microsecond)
		}
	}
}

// submit hands a task to the goroutine. It returns before the task is done, where there is a goroutine.
func (o *owner) submit(task func()) {
	if o.direct == nil {
		o.tasks <- task
		return
	}
	o.direct.Lock()
	defer o.direct.Unlock()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	o.fail(o.api.Check(o.api.CtxSetCurrent(o.context), "cuCtxSetCurrent", "entering the context"))
	task()
	o.settle()
}

// err is the first failure.
func (o *owner) err() error {
	if e := o.failure.Load(); e != nil {
		return *e
	}
	return nil
}

// fail keeps the first failure.
func (o *owner) fail(err error) {
	if err != nil {
		o.failure.CompareAndSwap(nil, &err)
	}
}

// send hands a task to the owner, which skips it after a failure.
func (o *owner) send(task func() error) {
	o.submit(func() {
		if o.err() == nil {
			o.fail(task())
		}
	})
}

// ask has the owner do a task and waits for it, but not for the GPU. An error of the task is returned and not kept.
func (o *owner) ask(task func() error) error {
	answer := make(chan error, 1)
	o.submit(func() {
		if err := o.err(); err != nil {
			answer <- err
			return
		}
		answer <- task()
	})
	return <-answer
}

// sendThen is send, and has the owner do something once the GPU is done with the task and all that was sent before. That is done after a
// failure too.
func (o *owner) sendThen(task func() error, then func()) {
	o.submit(func() {
		if o.err() == nil {
			o.fail(task())
		}
		if o.err() != nil || !o.mark(then) {
			then()
		}
	})
}

// mark records an event behind the work on the stream. It reports whether that went well; then will then be done once it is reached.
func (o *owner) mark(then func()) bool {
	var e driver.Event
	if n := len(o.events); n > 0 {
		e, o.events = o.events[n-1], o.events[:n-1]
	} else if err := o.api.Check(o.api.EventCreate(&e, driver.EventDisableTiming), "cuEventCreate", "making an event"); err != nil {
		o.fail(err)
		return false
	}
	if err := o.api.Check(o.api.EventRecord(e, o.stream), "cuEventRecord", "recording an event"); err != nil {
		o.events = append(o.events, e)
		o.fail(err)
		return false
	}
	o.pending = append(o.pending, pending{e, then})
	return true
}

// launch sends kernels to the GPU, one after the other.
func (o *owner) launch(calls ...kernels.Call) error {
	for i := range calls {
		c := &calls[i]
		if c.Empty() {
			continue
		}
		f, err := o.function(c.Kernel)
		if err != nil {
			return err
		}
		o.slots = o.slots[:0]
		for j := range c.Args {
			o.slots = append(o.slots, unsafe.Pointer(&c.Args[j]))
		}
		r := o.api.LaunchKernel(f, c.Grid, c.Block, c.Shared, o.stream, unsafe.SliceData(o.slots))
		runtime.KeepAlive(c.Args)
		if err := o.api.Check(r, "cuLaunchKernel", "launching %s on a grid %v of blocks %v", c.Kernel.Name, c.Grid, c.Block); err != nil {
			return err
		}
	}
	return nil
}
