package executor

import (
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"fspda/cuda/driver"
)

// Executor is the goroutine that owns a GPU's context, and the state that only it may touch. Other
// goroutines hand it work through [Executor.Do], [Executor.Enqueue] and [Executor.TakeBlock].
type Executor struct {
	gpuContext
	loaded  loadedKernels
	pool    pool
	pinned  pinnedPool
	events  eventPool
	graphs  map[driver.GraphExec]bool // all that exist
	closers map[Closer]bool           // library objects that exist

	ops          opQueue
	Collector    Collector    // collects kernels to launch them together
	onStream     []completion // callbacks of stream, oldest first
	onCopyStream []completion // callbacks of copyStream, oldest first
	freeLists    [][]func()   // empty callback lists, kept for their memory

	inbox *inbox
	ended chan struct{} // closed when the goroutine has ended
	// not nil: callers run their work themselves, for tests with very many small tasks
	inline *sync.Mutex
	// measurements: called when the goroutine gets and gives up its thread; may be nil
	OnThread func(now bool)
	garbage  garbage
	failure  atomic.Pointer[error] // the first
	watch    watchdog
}

// gpuContext is a GPU, its context and its two streams.
type gpuContext struct {
	API        *driver.API
	GPU        driver.Device
	Context    driver.Context
	Stream     driver.Stream // computes
	home       driver.Stream // Stream, also while On has work sent to another one; the streams of libraries' handles
	others     []driver.Stream
	CopyStream driver.Stream // copies batches to the GPU while it computes
}

// completion is callbacks that run on the host once the GPU has reached an event.
type completion struct {
	event driver.Event
	then  []func()
}

// ErrClosed is returned by operations after the device was closed.
var ErrClosed = errors.New("cuda: the device is closed")

// New returns an executor whose goroutine is not started. With inline there is none: callers run
// their work themselves.
func New(api *driver.API, inline bool) *Executor {
	ex := &Executor{gpuContext: gpuContext{API: api}, graphs: map[driver.GraphExec]bool{}, closers: map[Closer]bool{},
		Collector: separateLaunches{}, inbox: newInbox(), ended: make(chan struct{}),
		watch: watchdog{limit: launchLimit}}
	if inline {
		ex.inline = &sync.Mutex{}
	}
	return ex
}

// Start begins the goroutine with a first task. Where that fails the goroutine ends.
func (ex *Executor) Start(first func() error) error {
	started := make(chan error)
	go ex.run(first, started)
	return <-started
}

func (ex *Executor) run(first func() error, started chan<- error) {
	defer close(ex.ended)
	runtime.LockOSThread()
	err := first()
	runtime.UnlockOSThread()
	started <- err
	if err != nil {
		return
	}
	if ex.inline != nil {
		for ex.inbox.wait() { // false once the inbox is closed
		}
		return
	}
	ex.loop()
}

// Stop sends the operations that wait, runs last, and ends the goroutine. The executor must not be
// used any more.
func (ex *Executor) Stop(last func() error) error {
	end := make(chan error, 1)
	ex.post(item{task: func() {
		ex.drain()
		end <- last()
	}})
	err := <-end
	ex.inbox.close()
	<-ex.ended
	return err
}

// lockThread binds the goroutine to a thread that has the context, until unlockThread. The
// goroutine sleeps unbound: to sleep on a thread of its own would cost two more thread switches
// each time, which is more than most work takes.
func (ex *Executor) lockThread() {
	runtime.LockOSThread()
	ex.Fail(ex.API.Check(ex.API.CtxSetCurrent(ex.Context), "cuCtxSetCurrent", "entering the context"))
	if ex.OnThread != nil {
		ex.OnThread(true)
	}
}

func (ex *Executor) unlockThread() {
	if ex.OnThread != nil {
		ex.OnThread(false)
	}
	runtime.UnlockOSThread()
}

// sleep waits for an item. It is false once the inbox is closed and empty.
func (ex *Executor) sleep() bool {
	ex.unlockThread()
	if !ex.inbox.wait() {
		return false
	}
	ex.lockThread()
	return true
}

// napTime is how long the executor sleeps between two series of polls.
const napTime = 20 * time.Microsecond

func (ex *Executor) nap() {
	ex.checkAge()
	ex.unlockThread()
	time.Sleep(napTime)
	ex.lockThread()
}

// pollsPerNap is how often the executor polls the GPU's events before it naps.
const pollsPerNap = 2000

// loop accepts the items in the inbox, sends queued operations unless the GPU is busy enough, and
// polls the GPU's events, until the inbox is closed.
func (ex *Executor) loop() {
	var items []item
	ex.lockThread()
	for i := 0; ; i++ {
		if items = ex.inbox.takeAll(items); len(items) > 0 {
			ex.accept(items)
			i = 0
			continue
		}
		if ex.shouldSend() {
			ex.sendIterations()
			continue
		}
		if ex.ops.shouldCollect() {
			ex.collectIteration()
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

// accept runs tasks and queues operations, in order.
func (ex *Executor) accept(items []item) {
	for _, it := range items {
		if it.op == nil {
			if ex.ops.collected > 0 { // the task may use the stream
				ex.sendIterations()
			}
			it.task()
			continue
		}
		ex.ops.add(it.op)
		for ex.ops.count >= maxOps || ex.inline != nil && ex.ops.count > 0 {
			ex.sendIterations()
		}
	}
}

// poll queries the oldest event of each stream and runs the callbacks of one that is reached. It
// reports whether there was one.
func (ex *Executor) poll() bool {
	return ex.pollStream(&ex.onCopyStream) || ex.pollStream(&ex.onStream)
}

func (ex *Executor) pollStream(all *[]completion) bool {
	if len(*all) == 0 {
		return false
	}
	c := (*all)[0]
	r := ex.API.EventQuery(c.event)
	if r == driver.NotReady {
		return false
	}
	ex.watch.since = time.Time{}
	ex.Fail(ex.waited(r, "cuEventQuery"))
	*all = slices.Delete(*all, 0, 1) // few: in their memory
	ex.events.idle = append(ex.events.idle, c.event)
	ex.runAll(c.then)
	return true
}

// busy reports whether callbacks wait for the GPU.
func (ex *Executor) busy() bool { return len(ex.onStream)+len(ex.onCopyStream) > 0 }

// drain sends all queued operations and waits until the GPU has completed them.
func (ex *Executor) drain() {
	ex.flush()
	for i := 0; ex.busy(); i++ {
		if ex.poll() {
			i = 0
		} else if i > pollsPerNap {
			ex.checkAge()
			time.Sleep(napTime)
		}
	}
}

// post hands an item to the goroutine and returns at once; inline, it runs the item first. It is
// false once the executor has stopped.
func (ex *Executor) post(it item) bool {
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

// Err returns the first failure, or nil.
func (ex *Executor) Err() error {
	if e := ex.failure.Load(); e != nil {
		return *e
	}
	return nil
}

// Fail records the first failure. After it the executor sends nothing to the GPU.
func (ex *Executor) Fail(err error) {
	if err != nil {
		ex.failure.CompareAndSwap(nil, &err)
	}
}

// Do runs a task on the executor and returns its error, which is recorded as a failure only if the
// GPU is lost. It does not wait for the GPU nor for queued operations.
func (ex *Executor) Do(task func() error) error {
	answer := make(chan error, 1)
	if !ex.post(item{task: func() {
		if err := ex.Err(); err != nil {
			answer <- err
			return
		}
		err := task()
		if driver.Lost(err) {
			ex.Fail(err)
		}
		answer <- err
	}}) {
		return ErrClosed
	}
	return <-answer
}

// Ask is Do for a task with an answer.
func Ask[T any](ex *Executor, task func() (T, error)) (answer T, err error) {
	err = ex.Do(func() (err error) {
		answer, err = task()
		return err
	})
	return answer, err
}

// DoInOrder is do after all queued operations have been sent.
func (ex *Executor) DoInOrder(task func() error) error {
	return ex.Do(func() error {
		ex.flush()
		return task()
	})
}

// FreeMemory returns how many bytes of the GPU are free, by the driver's count, and how many there
// are. The executor calls it.
func (ex *Executor) FreeMemory() (free, total uintptr, err error) {
	err = ex.API.Check(ex.API.MemGetInfo(&free, &total), "cuMemGetInfo", "asking for the free memory")
	return free, total, err
}

// Shutdown destroys all that was made in the context, the handles of libraries after their objects.
// After a loss of the GPU everything is gone already, and the driver's errors are left out.
func (ex *Executor) Shutdown(handles ...Closer) error {
	if ex.watch.hung { // the end of the process gives everything back
		return nil
	}
	t := teardown{ex: ex, lost: ex.Err() != nil}
	for _, s := range append(ex.others, ex.CopyStream, ex.Stream) {
		if s != 0 {
			t.check(ex.API.StreamSynchronize(s), "cuStreamSynchronize")
		}
	}
	for e := range ex.graphs {
		t.check(ex.API.GraphExecDestroy(e), "cuGraphExecDestroy")
	}
	for x := range ex.closers {
		t.close(x)
	}
	clear(ex.closers)
	for _, h := range handles {
		t.close(h)
	}
	for _, e := range ex.events.all {
		t.check(ex.API.EventDestroy(e), "cuEventDestroy")
	}
	for _, b := range ex.pool.takeAll() {
		t.check(ex.API.MemFree(b), "cuMemFree")
	}
	for _, p := range ex.pinned.all {
		t.check(ex.API.MemFreeHost(p), "cuMemFreeHost")
	}
	for _, m := range ex.loaded.modules {
		t.check(ex.API.ModuleUnload(m), "cuModuleUnload")
	}
	t.context()
	ex.events, ex.loaded.modules = eventPool{}, nil
	if ex.failure.Load() == nil {
		ex.Fail(ErrClosed)
	}
	return errors.Join(t.errs...)
}

// teardown collects the errors of a shutdown.
type teardown struct {
	ex   *Executor
	lost bool // errors are left out
	errs []error
}

func (t *teardown) check(r driver.Result, call string) {
	if !t.lost {
		t.errs = append(t.errs, t.ex.API.Check(r, call, "closing the GPU"))
	}
}

func (t *teardown) close(x Closer) {
	if !t.lost {
		t.errs = append(t.errs, x.Close())
	}
}

// context destroys the streams and releases the context.
func (t *teardown) context() {
	ex := t.ex
	for _, s := range append(ex.others, ex.CopyStream, ex.Stream) {
		if s != 0 {
			t.check(ex.API.StreamDestroy(s), "cuStreamDestroy")
		}
	}
	if ex.gpuContext.Context != 0 {
		t.check(ex.API.CtxSetCurrent(0), "cuCtxSetCurrent")
		t.check(ex.API.PrimaryCtxRelease(ex.GPU), "cuDevicePrimaryCtxRelease")
	}
	ex.Stream, ex.home, ex.CopyStream, ex.others, ex.gpuContext.Context = 0, 0, 0, nil, 0
}
