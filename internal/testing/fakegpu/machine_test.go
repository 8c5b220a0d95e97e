package fakegpu

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"fspda/cuda/driver"
)

// fixture is a machine with a current context and a stream.
type fixture struct {
	t      *testing.T
	m      *Machine
	api    *driver.API
	stream driver.Stream
}

func newFixture(t *testing.T) *fixture {
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	b := &fixture{t: t, m: New(Options{Memory: 1 << 20})}
	b.api = b.m.API()
	if v, err := b.api.Start(); err != nil || v != 13000 {
		t.Fatal(v, err)
	}
	var c driver.Context
	b.do(b.api.PrimaryCtxRetain(&c, 0))
	b.do(b.api.CtxSetCurrent(c))
	b.do(b.api.StreamCreate(&b.stream, driver.StreamNonBlocking, 0))
	t.Cleanup(func() { b.api.CtxSetCurrent(0) })
	return b
}

func (b *fixture) do(r driver.Result) {
	b.t.Helper()
	if r != driver.Success {
		b.t.Fatal(r, b.m.LossCause())
	}
}

func (b *fixture) alloc(n uintptr) (p driver.Pointer) {
	b.t.Helper()
	b.do(b.api.MemAlloc(&p, n))
	return p
}

func (b *fixture) pinned(n uintptr) []byte {
	b.t.Helper()
	var p unsafe.Pointer
	b.do(b.api.MemHostAlloc(&p, n, 0))
	return unsafe.Slice((*byte)(p), n)
}

// Copies run in order when something waits for them, so a source that is changed too early arrives
// changed.
func TestCopies(t *testing.T) {
	b := newFixture(t)
	host, back, at := b.pinned(8), b.pinned(8), b.alloc(8)
	copy(host, "one-two-")
	b.do(b.api.MemcpyHtoD(at, unsafe.Pointer(&host[0]), 8, b.stream))
	copy(host, "changed-")
	b.do(b.api.MemsetD8(at+4, 'x', 4, b.stream))
	b.do(b.api.MemcpyDtoH(unsafe.Pointer(&back[0]), at, 8, b.stream))
	if string(back) == "chanxxxx" {
		t.Error("the copy ran before anything waited for it")
	}
	b.do(b.api.StreamSynchronize(b.stream))
	if string(back) != "chanxxxx" {
		t.Errorf("got %q", back)
	}
	if r := b.api.MemcpyDtoD(at, at+4, 8, b.stream); r != driver.InvalidValue {
		t.Errorf("a copy beyond an allocation: %v", r)
	}
}

// EventQuery returns NotReady before the event completes, and a stream can wait for another.
func TestEvents(t *testing.T) {
	b := newFixture(t)
	var e driver.Event
	var other driver.Stream
	b.do(b.api.EventCreate(&e, 0))
	b.do(b.api.StreamCreate(&other, 0, 0))
	host, at := b.pinned(4), b.alloc(4)
	b.do(b.api.MemsetD8(at, 'a', 4, b.stream))
	b.do(b.api.EventRecord(e, b.stream))
	if r := b.api.EventQuery(e); r != driver.NotReady {
		t.Errorf("at once: %v", r)
	}
	b.do(b.api.StreamWaitEvent(other, e, 0))
	b.do(b.api.MemcpyDtoH(unsafe.Pointer(&host[0]), at, 4, other))
	b.do(b.api.StreamSynchronize(other))
	if string(host) != "aaaa" || b.api.EventQuery(e) != driver.Success {
		t.Errorf("got %q", host)
	}
}

// Captured work runs when its graph is launched, and may be launched again.
func TestGraphs(t *testing.T) {
	b := newFixture(t)
	ran := 0
	b.m.SetKernels(func(string) (int, bool) { return 1, true }, func(l Launch) error {
		name, args := l.Kernel, l.Args
		ran++
		if name != "k" || args[0] != 7 {
			return fmt.Errorf("launched %s with %v", name, args)
		}
		return nil
	})
	var mod driver.Module
	var f driver.Function
	image, name, value := []byte("cubin"), []byte("k\x00"), uint64(7)
	b.do(b.api.ModuleLoadData(&mod, unsafe.Pointer(&image[0]), 0, nil, nil))
	b.do(b.api.ModuleGetFunction(&f, mod, &name[0]))
	args := []unsafe.Pointer{unsafe.Pointer(&value)}
	one := [3]uint32{1, 1, 1}
	b.do(b.api.StreamBeginCapture(b.stream, driver.CaptureThreadLocal))
	b.do(b.api.LaunchKernel(f, one, one, 0, b.stream, args[:]))
	value = 8 // arguments were copied
	var g driver.Graph
	var exec driver.GraphExec
	b.do(b.api.StreamEndCapture(b.stream, &g))
	b.do(b.api.GraphInstantiate(&exec, g, 0))
	b.do(b.api.StreamSynchronize(b.stream))
	if ran != 0 {
		t.Errorf("ran %d times while it was captured", ran)
	}
	b.do(b.api.GraphLaunch(exec, b.stream))
	b.do(b.api.GraphLaunch(exec, b.stream))
	b.do(b.api.StreamSynchronize(b.stream))
	if ran != 2 {
		t.Errorf("ran %d times, want 2", ran)
	}
	b.do(b.api.StreamBeginCapture(b.stream, 0))
	if r := b.api.StreamSynchronize(b.stream); r != driver.CaptureUnsupported {
		t.Errorf("waiting during a capture: %v", r)
	}
	if r := b.api.StreamEndCapture(b.stream, &g); r != driver.CaptureInvalidated {
		t.Errorf("ending a capture after a wait: %v", r)
	}
	if r := b.api.LaunchKernel(f, [3]uint32{}, one, 0, b.stream, args[:]); r != driver.InvalidValue {
		t.Errorf("an empty grid: %v", r)
	}
}

// Memory is exhausted, requested faults occur, a lost device stays lost, and leaks are listed.
func TestFaults(t *testing.T) {
	b := newFixture(t)
	at := b.alloc(1 << 19)
	var p driver.Pointer
	if r := b.api.MemAlloc(&p, 1<<19+1); r != driver.OutOfMemory {
		t.Errorf("allocating more than is free: %v", r)
	}
	b.m.Fail("MemsetD8", 1, driver.InvalidValue)
	b.do(b.api.MemsetD8(at, 0, 4, b.stream))
	if r := b.api.MemsetD8(at, 0, 4, b.stream); r != driver.InvalidValue {
		t.Errorf("the fault: %v", r)
	}
	b.do(b.api.MemsetD8(at, 0, 4, b.stream))
	if got := b.m.Leaks(); !slices.Equal(got, []string{"1 allocations of device memory", "1 streams", "1 contexts"}) {
		t.Errorf("leaks %q", got)
	}
	b.m.Fail("StreamSynchronize", 0, driver.LaunchFailed)
	for range 2 {
		if r := b.api.StreamSynchronize(b.stream); r != driver.LaunchFailed {
			t.Errorf("a lost device: %v", r)
		}
	}
	if err := b.api.Check(driver.LaunchFailed, "cuStreamSynchronize", "waiting"); !driver.Lost(err) ||
		driver.IsOutOfMemory(err) {
		t.Errorf("%v is not reported as a lost device", err)
	}
}

// A call from a thread without a context fails.
func TestThreads(t *testing.T) {
	b := newFixture(t)
	done := make(chan driver.Result)
	go func() {
		runtime.LockOSThread()
		var p driver.Pointer
		done <- b.api.MemAlloc(&p, 8)
	}()
	if r := <-done; r != driver.InvalidContext {
		t.Errorf("a call from another thread: %v", r)
	}
}
