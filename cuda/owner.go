package cuda

import (
	"fmt"
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

// owner is the goroutine that works with a GPU's context, and what only it may touch.
type owner struct {
	api       *driver.API
	gpu       driver.Device
	context   driver.Context
	stream    driver.Stream // computes
	copies    driver.Stream // brings batches to the device while the other computes
	functions map[*kernels.Kernel]driver.Function
	modules   []driver.Module
	pool      pool
	arena     block // what Programs compute in, one after the other

	arenaHazard hazard
	blas        *cublas.Handle
	lt          *cublas.Lt    // nil where there is none; it works in the memory of blas, on the same stream
	dnn         *cudnn.Handle // nil where there is none
	noDNN       error         // why
	choices     *cudnn.Choices
	pinned      pinned
	events      []driver.Event // idle
	made        []driver.Event // all there are
	execs       map[driver.GraphExec]bool
	described   map[described]bool // all there are
	pending     []pending          // on the stream
	arriving    []pending          // on the stream of copies
	window      window
	march       *marcher   // nil: everything is launched
	lists       [][]func() // empty ones: memory of what was pending
	slots       []unsafe.Pointer
	drawing     drawing
	works       func(now bool) // told when the owner begins and ends to work on a thread, for measurements; nil: nobody

	queue *queue
	done  chan struct{} // closed when the goroutine has ended
	// not nil: there is no goroutine, and whoever has a task does it; for tests with very many
	// small tasks
	direct *sync.Mutex

	garbage struct { // what the collector found; the owner takes it when it needs memory
		sync.Mutex
		blocks  []block
		execs   []driver.GraphExec
		library []described
		events  []driver.Event
	}
	failure atomic.Pointer[error]
	stuck   bool // the GPU stands still: nothing waits for it any more
}

// pending is what happens on the host once the GPU has come to a place in its work.
type pending struct {
	event driver.Event
	then  []func()
}

// run is the goroutine. start is its first task: where it fails there is no second.
func (o *owner) run(start func() error, started chan<- error) {
	defer close(o.done)
	runtime.LockOSThread()
	err := start()
	runtime.UnlockOSThread()
	started <- err
	if err != nil {
		return
	}
	if o.direct != nil {
		for o.queue.wait() { // until it is closed
		}
		return
	}
	o.serve()
}

// enter binds the goroutine to a thread that has the context, until leave. To sleep on a thread of
// its own would cost two more changes of threads each time, which is more than most of what there
// is to do.
func (o *owner) enter() {
	runtime.LockOSThread()
	o.fail(o.api.Check(o.api.CtxSetCurrent(o.context), "cuCtxSetCurrent", "entering the context"))
	if o.works != nil {
		o.works(true)
	}
}

func (o *owner) leave() {
	if o.works != nil {
		o.works(false)
	}
	runtime.UnlockOSThread()
}

// rest sleeps until there is something in the queue, or nothing to come: then it is false.
func (o *owner) rest() bool {
	o.leave()
	if !o.queue.wait() {
		return false
	}
	o.enter()
	return true
}

// pause sleeps for a moment.
func (o *owner) pause() {
	o.leave()
	time.Sleep(20 * time.Microsecond)
	o.enter()
}

// spins is how often the GPU is asked whether it has come to an event before the owner rests in
// between.
const spins = 2000

// serve does all that is in the queue, sends waves of what it left in the window unless the GPU is
// busy enough, and looks whether the GPU has come to an event, until there is nothing more to come.
func (o *owner) serve() {
	var items []item
	o.enter()
	for i := 0; ; i++ {
		if items = o.queue.take(items); len(items) > 0 {
			o.do(items)
			i = 0
			continue
		}
		if o.ready() {
			o.advance()
			continue
		}
		if !o.busy() {
			if !o.rest() {
				return
			}
			i = 0
		} else if o.poll() {
			i = 0
		} else if i > spins {
			o.pause()
		}
	}
}

// do takes what came in a queue.
func (o *owner) do(items []item) {
	for _, it := range items {
		if it.op == nil {
			it.task()
			continue
		}
		o.window.plan(it.op)
		for o.window.ops >= mostOps || o.direct != nil && o.window.ops > 0 {
			o.advance()
		}
	}
}

// poll asks for the oldest events, and does what waits for them.
func (o *owner) poll() bool {
	return o.pollOne(&o.arriving) || o.pollOne(&o.pending)
}

func (o *owner) pollOne(all *[]pending) bool {
	if len(*all) == 0 {
		return false
	}
	p := (*all)[0]
	r := o.api.EventQuery(p.event)
	if r == driver.NotReady {
		return false
	}
	o.fail(o.api.Check(r, "cuEventQuery", "waiting for the GPU"))
	*all = append((*all)[:0], (*all)[1:]...) // few: in their memory
	o.events = append(o.events, p.event)
	o.finish(p.then)
	return true
}

// busy tells whether the GPU has still to do something that is waited for.
func (o *owner) busy() bool { return len(o.pending)+len(o.arriving) > 0 }

// settle sends the window, and waits for all that the GPU has still to do.
func (o *owner) settle() {
	o.flush()
	for i := 0; o.busy(); i++ {
		if o.poll() {
			i = 0
		} else if i > spins {
			time.Sleep(20 * time.Microsecond)
		}
	}
}

// submit hands work to the goroutine. It returns before the work is done, where there is a
// goroutine. It is false once the device is closed.
func (o *owner) submit(it item) bool {
	if o.direct == nil {
		return o.queue.push(it)
	}
	o.direct.Lock()
	defer o.direct.Unlock()
	o.enter()
	defer o.leave()
	o.do([]item{it})
	o.settle()
	return true
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

// send hands an op to the owner, which skips it after a failure.
func (o *owner) send(task func() error, touches ...touch) {
	o.submitOp(&op{touches: touches, send: task})
}

// ask has the owner do a task and waits for it, but not for the GPU. An error of the task is
// returned and not kept.
func (o *owner) ask(task func() error) error {
	answer := make(chan error, 1)
	if !o.submit(item{task: func() {
		if err := o.err(); err != nil {
			answer <- err
			return
		}
		answer <- task()
	}}) {
		return errClosed
	}
	return <-answer
}

// sendCall hands a call to the owner, as send does.
func (o *owner) sendCall(c kernels.Call, touches ...touch) {
	p := &op{call: c}
	p.touches = append(p.few[:0], touches...)
	o.submitOp(p)
}

// sendThen is send, and has the owner do something once the GPU is done with it. That is done after
// a failure too.
func (o *owner) sendThen(task func() error, then func(), touches ...touch) {
	o.submitOp(&op{touches: touches, send: task, then: then})
}

// mark records an event behind the work on the stream. It reports whether that went well; then will
// then be done once it is reached.
func (o *owner) mark(then func()) bool { return o.markAll(o.stream, &o.pending, []func(){then}) }

func (o *owner) markAll(s driver.Stream, all *[]pending, then []func()) bool {
	e, err := o.event()
	if err != nil {
		o.fail(err)
		return false
	}
	if err := o.record(e, s); err != nil {
		o.events = append(o.events, e)
		o.fail(err)
		return false
	}
	*all = append(*all, pending{e, then})
	return true
}

// event takes an idle event, or makes one.
func (o *owner) event() (driver.Event, error) {
	if len(o.events) == 0 {
		o.collect()
	}
	if n := len(o.events); n > 0 {
		e := o.events[n-1]
		o.events = o.events[:n-1]
		return e, nil
	}
	var e driver.Event
	if err := o.api.Check(o.api.EventCreate(&e, driver.EventDisableTiming), "cuEventCreate",
		"making an event"); err != nil {
		return 0, err
	}
	o.made = append(o.made, e)
	return e, nil
}

func (o *owner) record(e driver.Event, s driver.Stream) error {
	return o.api.Check(o.api.EventRecord(e, s), "cuEventRecord", "recording an event")
}

// await has a stream wait for an event.
func (o *owner) await(s driver.Stream, e driver.Event) error {
	return o.api.Check(o.api.StreamWaitEvent(s, e, 0), "cuStreamWaitEvent", "having a stream wait")
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
		launch, function := o.api.LaunchKernel, "cuLaunchKernel"
		if c.Together {
			if o.api.LaunchTogether == nil {
				return fmt.Errorf("cuda: launching %s: the driver has no cooperative launches: update it",
					c.Kernel.Name)
			}
			launch, function = o.api.LaunchTogether, "cuLaunchCooperativeKernel"
		}
		r := launch(f, c.Grid, c.Block, c.Shared, o.stream, o.slots)
		runtime.KeepAlive(c.Args)
		if r != driver.Success { // asked here, since the arguments of Check are memory to make
			return o.api.Check(r, function, "launching %s on a grid %v of blocks %v", c.Kernel.Name, c.Grid, c.Block)
		}
	}
	return nil
}
