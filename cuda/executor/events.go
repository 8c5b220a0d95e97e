package executor

import (
	"errors"
	"fmt"
	"time"

	"fspda/cuda/driver"
)

// eventPool keeps events without timing for reuse.
type eventPool struct {
	idle []driver.Event
	all  []driver.Event
}

// TakeEvent takes an idle event, or makes one.
func (ex *Executor) TakeEvent() (driver.Event, error) {
	if len(ex.events.idle) == 0 {
		ex.CollectGarbage()
	}
	if n := len(ex.events.idle); n > 0 {
		e := ex.events.idle[n-1]
		ex.events.idle = ex.events.idle[:n-1]
		return e, nil
	}
	var e driver.Event
	if err := ex.API.Check(ex.API.EventCreate(&e, driver.EventDisableTiming), "cuEventCreate",
		"making an event"); err != nil {
		return 0, err
	}
	ex.events.all = append(ex.events.all, e)
	return e, nil
}

func (ex *Executor) PutEvent(e driver.Event) { ex.events.idle = append(ex.events.idle, e) }

func (ex *Executor) Record(e driver.Event, s driver.Stream) error {
	return ex.API.Check(ex.API.EventRecord(e, s), "cuEventRecord", "recording an event")
}

func (ex *Executor) WaitEvent(s driver.Stream, e driver.Event) error {
	return ex.API.Check(ex.API.StreamWaitEvent(s, e, 0), "cuStreamWaitEvent", "having a stream wait")
}

// whenReached records an event after the work on the stream and has then called once the GPU has
// reached it. It is false where that fails; then is not called.
func (ex *Executor) whenReached(then func()) bool {
	return ex.recordCompletion(ex.Stream, &ex.onStream, []func(){then})
}

func (ex *Executor) recordCompletion(s driver.Stream, all *[]completion, then []func()) bool {
	e, err := ex.TakeEvent()
	if err != nil {
		ex.Fail(err)
		return false
	}
	if err := ex.Record(e, s); err != nil {
		ex.PutEvent(e)
		ex.Fail(err)
		return false
	}
	*all = append(*all, completion{e, then})
	return true
}

// Synchronize waits until the GPU has completed the work on the stream.
func (ex *Executor) Synchronize() error {
	if ex.Collector.MayHang() { // the driver would wait forever for one that does not end
		return ex.SyncWithin(ex.watch.limit)
	}
	return ex.waited(ex.API.StreamSynchronize(ex.Stream), "cuStreamSynchronize")
}

// waited returns the error of a call that waits for the GPU. Any work before the call may have
// caused it.
func (ex *Executor) waited(r driver.Result, call string) error {
	if r == driver.Success {
		return nil
	}
	err := ex.API.Check(r, call, "waiting for the GPU")
	if r.Sticky() && !ex.API.Blocking {
		err = fmt.Errorf("%w; %s=1 names the kernel", err, driver.LaunchBlockingVariable)
	}
	return err
}

// SyncWithin waits until the GPU has completed all that was sent. Where that takes longer than
// limit the GPU counts as hung, since nothing runs after a launch that does not end.
func (ex *Executor) SyncWithin(limit time.Duration) error {
	e, err := ex.TakeEvent()
	if err != nil {
		return err
	}
	defer ex.PutEvent(e)
	if err := ex.Record(e, ex.Stream); err != nil {
		return err
	}
	for begin := time.Now(); ; time.Sleep(50 * time.Microsecond) {
		r := ex.API.EventQuery(e)
		if r != driver.NotReady {
			return ex.waited(r, "cuEventQuery")
		}
		if time.Since(begin) > limit {
			return ex.hang(limit)
		}
	}
}

// TimeWork times n repetitions of work on the GPU, in ms: the fastest of some turns. The
// repetitions are one graph, as work is later, since short work is over sooner than the host can
// send it. With n = 0 the work is sent once, without a graph. [ErrNotCapturable] marks work that
// cannot be in a graph.
func (ex *Executor) TimeWork(n, turns int, send func() error) (fastest float64, err error) {
	if n == 0 {
		return ex.elapsed(send)
	}
	repeated := func() error {
		for range n {
			if err := send(); err != nil {
				return err
			}
		}
		return nil
	}
	if ex.API.Blocking {
		return ex.elapsed(repeated)
	}
	exec, err := ex.capture("timed work", repeated)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrNotCapturable, err)
	}
	for turn := range turns {
		ms, err := ex.elapsed(func() error {
			return ex.API.Check(ex.API.GraphLaunch(exec, ex.Stream), "cuGraphLaunch", "launching timed work")
		})
		if err != nil {
			return 0, errors.Join(err, ex.destroyGraph(exec))
		}
		if turn == 0 || ms < fastest {
			fastest = ms
		}
	}
	return fastest, ex.destroyGraph(exec)
}

// ErrNotCapturable says that work cannot be captured in a graph.
var ErrNotCapturable = errors.New("not in a graph")

// elapsed returns the GPU's time from before to after work that send sends to the stream, in ms.
func (ex *Executor) elapsed(send func() error) (ms float64, err error) {
	var at [2]driver.Event
	defer func() { err = errors.Join(err, ex.DestroyEvents(at[:]...)) }()
	for i := range at { // both first: to make one takes time
		if err := ex.TimedEvent(&at[i]); err != nil {
			return 0, err
		}
	}
	if err := ex.Record(at[0], ex.Stream); err != nil {
		return 0, err
	}
	if err := send(); err != nil {
		return 0, err
	}
	if err := ex.Record(at[1], ex.Stream); err != nil {
		return 0, err
	}
	return ex.Between(at[0], at[1])
}

func (ex *Executor) TimedEvent(e *driver.Event) error {
	return ex.API.Check(ex.API.EventCreate(e, 0), "cuEventCreate", "making an event")
}

// Between waits for the later of two timestamps and returns the time between them, in ms.
func (ex *Executor) Between(from, to driver.Event) (float64, error) {
	if err := ex.waited(ex.API.EventSynchronize(to), "cuEventSynchronize"); err != nil {
		return 0, err
	}
	var ms float32
	err := ex.API.Check(ex.API.EventElapsedTime(&ms, from, to), "cuEventElapsedTime", "reading the GPU's clock")
	return float64(ms), err
}

// DestroyEvents destroys events with timing, of which 0 is none.
func (ex *Executor) DestroyEvents(all ...driver.Event) error {
	for _, e := range all {
		if e == 0 {
			continue
		}
		if err := ex.API.Check(ex.API.EventDestroy(e), "cuEventDestroy", "destroying an event"); err != nil {
			return err
		}
	}
	return nil
}
