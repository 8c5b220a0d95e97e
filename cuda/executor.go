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
type executor struct {
	api        *driver.API
	gpu        driver.Device
	context    driver.Context
	stream     driver.Stream // computes
	copyStream driver.Stream // brings batches to the device while the other computes
	functions  map[*kernels.Kernel]driver.Function
	modules    []driver.Module
	pool       pool
	arena      block // what Programs compute in, one after the other

	arenaDep     dependency
	blas         *cublas.Handle
	lt           *cublas.Lt    // nil where there is none; it works in the memory of blas, on the same stream
	dnn          *cudnn.Handle // nil where there is none
	dnnErr       error         // why
	choices      *cudnn.ChoiceCache
	pinned       pinnedPool
	idleEvents   []driver.Event // idle
	allEvents    []driver.Event // all there are
	graphs       map[driver.GraphExec]bool
	closers      map[closer]bool // all there are
	onStream     []completion    // on the stream
	onCopyStream []completion    // on the stream of copies
	ops          opQueue
	mega         *megakernel // nil: everything is launched
	freeLists    [][]func()  // empty ones: memory of what was pending
	args         []unsafe.Pointer
	draw         drawScratch
	onThread     func(now bool) // told when the owner begins and ends to work on a thread, for measurements; nil: nobody

	inbox *inbox
	ended chan struct{} // closed when the goroutine has ended
	// not nil: there is no goroutine, and whoever has a task does it; for tests with very many
	// small tasks
	inline *sync.Mutex

	garbage struct { // what the collector found; the owner takes it when it needs memory
		sync.Mutex
		blocks  []block
		graphs  []driver.GraphExec
		closers []closer
		events  []driver.Event
	}
	failure atomic.Pointer[error]
	hung    bool // the GPU stands still: nothing waits for it any more
}

// pending is what happens on the host once the GPU has come to a place in its work.
type completion struct {
	event driver.Event
	then  []func()
}

// run is the goroutine. start is its first task: where it fails there is no second.
func (ex *executor) run(start func() error, started chan<- error) {
	defer close(ex.ended)
	runtime.LockOSThread()
	err := start()
	runtime.UnlockOSThread()
	started <- err
	if err != nil {
		return
	}
	if ex.inline != nil {
		for ex.inbox.wait() { // until it is closed
		}
		return
	}
	ex.loop()
}

// enter binds the goroutine to a thread that has the context, until leave. To sleep on a thread of
// its own would cost two more changes of threads each time, which is more than most of what there
// is to do.
func (ex *executor) lockThread() {
	runtime.LockOSThread()
	ex.fail(ex.api.Check(ex.api.CtxSetCurrent(ex.context), "cuCtxSetCurrent", "entering the context"))
	if ex.onThread != nil {
		ex.onThread(true)
	}
}

func (ex *executor) unlockThread() {
	if ex.onThread != nil {
		ex.onThread(false)
	}
	runtime.UnlockOSThread()
}

// rest sleeps until there is something in the queue, or nothing to come: then it is false.
func (ex *executor) sleep() bool {
	ex.unlockThread()
	if !ex.inbox.wait() {
		return false
	}
	ex.lockThread()
	return true
}

// pause sleeps for a moment.
func (ex *executor) nap() {
	ex.unlockThread()
	time.Sleep(20 * time.Microsecond)
	ex.lockThread()
}

// spins is how often the GPU is asked whether it has come to an event before the owner rests in
// between.
const pollsPerNap = 2000

// serve does all that is in the queue, sends waves of what it left in the window unless the GPU is
// busy enough, and looks whether the GPU has come to an event, until there is nothing more to come.
func (ex *executor) loop() {
	var items []item
	ex.lockThread()
	for i := 0; ; i++ {
		if items = ex.inbox.takeAll(items); len(items) > 0 {
			ex.accept(items)
			i = 0
			continue
		}
		if ex.shouldSend() {
			ex.sendIteration()
			continue
		}
		if !ex.busy() {
			if !ex.sleep() {
				return
			}
			i = 0
		} else if ex.poll() {
			i = 0
		} else if i > pollsPerNap {
			ex.nap()
		}
	}
}

// do takes what came in a queue.
func (ex *executor) accept(items []item) {
	for _, it := range items {
		if it.op == nil {
			it.task()
			continue
		}
		ex.ops.add(it.op)
		for ex.ops.count >= maxOps || ex.inline != nil && ex.ops.count > 0 {
			ex.sendIteration()
		}
	}
}

// poll asks for the oldest events, and does what waits for them.
func (ex *executor) poll() bool {
	return ex.pollStream(&ex.onCopyStream) || ex.pollStream(&ex.onStream)
}

func (ex *executor) pollStream(all *[]completion) bool {
	if len(*all) == 0 {
		return false
	}
	p := (*all)[0]
	r := ex.api.EventQuery(p.event)
	if r == driver.NotReady {
		return false
	}
	ex.fail(ex.api.Check(r, "cuEventQuery", "waiting for the GPU"))
	*all = append((*all)[:0], (*all)[1:]...) // few: in their memory
	ex.idleEvents = append(ex.idleEvents, p.event)
	ex.runAll(p.then)
	return true
}

// busy tells whether the GPU has still to do something that is waited for.
func (ex *executor) busy() bool { return len(ex.onStream)+len(ex.onCopyStream) > 0 }

// settle sends the window, and waits for all that the GPU has still to do.
func (ex *executor) drain() {
	ex.flush()
	for i := 0; ex.busy(); i++ {
		if ex.poll() {
			i = 0
		} else if i > pollsPerNap {
			time.Sleep(20 * time.Microsecond)
		}
	}
}

// submit hands work to the goroutine. It returns before the work is done, where there is a
// goroutine. It is false once the device is closed.
func (ex *executor) post(it item) bool {
	if ex.inline == nil {
		return ex.inbox.push(it)
	}
	ex.inline.Lock()
	defer ex.inline.Unlock()
	ex.lockThread()
	defer ex.unlockThread()
	ex.accept([]item{it})
	ex.drain()
	return true
}

// err is the first failure.
func (ex *executor) err() error {
	if e := ex.failure.Load(); e != nil {
		return *e
	}
	return nil
}

// fail keeps the first failure.
func (ex *executor) fail(err error) {
	if err != nil {
		ex.failure.CompareAndSwap(nil, &err)
	}
}

// send hands an op to the owner, which skips it after a failure.
func (ex *executor) enqueue(task func() error, accesses ...access) {
	ex.enqueueOp(&op{accesses: accesses, send: task})
}

// ask has the owner do a task and waits for it, but not for the GPU. An error of the task is
// returned and not kept.
func (ex *executor) do(task func() error) error {
	answer := make(chan error, 1)
	if !ex.post(item{task: func() {
		if err := ex.err(); err != nil {
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
func (ex *executor) enqueueCall(c kernels.Call, accesses ...access) {
	p := &op{call: c}
	p.accesses = append(p.accessArray[:0], accesses...)
	ex.enqueueOp(p)
}

// sendThen is send, and has the owner do something once the GPU is done with it. That is done after
// a failure too.
func (ex *executor) enqueueThen(task func() error, then func(), accesses ...access) {
	ex.enqueueOp(&op{accesses: accesses, send: task, then: then})
}

// mark records an event behind the work on the stream. It reports whether that went well; then will
// then be done once it is reached.
func (ex *executor) whenReached(then func()) bool {
	return ex.recordCompletion(ex.stream, &ex.onStream, []func(){then})
}

func (ex *executor) recordCompletion(s driver.Stream, all *[]completion, then []func()) bool {
	e, err := ex.takeEvent()
	if err != nil {
		ex.fail(err)
		return false
	}
	if err := ex.record(e, s); err != nil {
		ex.idleEvents = append(ex.idleEvents, e)
		ex.fail(err)
		return false
	}
	*all = append(*all, completion{e, then})
	return true
}

// event takes an idle event, or makes one.
func (ex *executor) takeEvent() (driver.Event, error) {
	if len(ex.idleEvents) == 0 {
		ex.collectGarbage()
	}
	if n := len(ex.idleEvents); n > 0 {
		e := ex.idleEvents[n-1]
		ex.idleEvents = ex.idleEvents[:n-1]
		return e, nil
	}
	var e driver.Event
	if err := ex.api.Check(ex.api.EventCreate(&e, driver.EventDisableTiming), "cuEventCreate",
		"making an event"); err != nil {
		return 0, err
	}
	ex.allEvents = append(ex.allEvents, e)
	return e, nil
}

func (ex *executor) record(e driver.Event, s driver.Stream) error {
	return ex.api.Check(ex.api.EventRecord(e, s), "cuEventRecord", "recording an event")
}

// await has a stream wait for an event.
func (ex *executor) waitEvent(s driver.Stream, e driver.Event) error {
	return ex.api.Check(ex.api.StreamWaitEvent(s, e, 0), "cuStreamWaitEvent", "having a stream wait")
}

// launch sends kernels to the GPU, one after the other.
func (ex *executor) launch(calls ...kernels.Call) error {
	for i := range calls {
		c := &calls[i]
		if c.Empty() {
			continue
		}
		f, err := ex.function(c.Kernel)
		if err != nil {
			return err
		}
		ex.args = ex.args[:0]
		for j := range c.Args {
			ex.args = append(ex.args, unsafe.Pointer(&c.Args[j]))
		}
		launch, function := ex.api.LaunchKernel, "cuLaunchKernel"
		if c.Cooperative {
			if ex.api.LaunchCooperative == nil {
				return fmt.Errorf("cuda: launching %s: the driver has no cooperative launches: update it",
					c.Kernel.Name)
			}
			launch, function = ex.api.LaunchCooperative, "cuLaunchCooperativeKernel"
		}
		r := launch(f, c.Grid, c.Block, c.Shared, ex.stream, ex.args)
		runtime.KeepAlive(c.Args)
		if r != driver.Success { // asked here, since the arguments of Check are memory to make
			return ex.api.Check(r, function, "launching %s on a grid %v of blocks %v", c.Kernel.Name, c.Grid, c.Block)
		}
	}
	return nil
}
