package fakegpu

import (
	"fmt"
	"time"
	"unsafe"

	"fspda/cuda/driver"
	"fspda/cuda/dynlib"
)

// stream is a queue of work, which runs when something waits for it.
type stream struct {
	queue       []work
	started     int    // number of operations of the queue that have finished or started
	capture     *graph // nil unless the stream is being captured
	invalidated bool   // the capture was invalidated
}

// work is one operation of a stream.
type work struct {
	name string
	run  func() error
	wait *mark // if not nil, waits for that point instead
}

// mark is a point in a stream's queue.
type mark struct {
	stream *stream
	at     int // number of operations before it
}

type event struct {
	recorded *mark
	queried  bool // EventQuery was called since it was recorded
	at       time.Time
}

// graph is a captured sequence of operations.
type graph struct{ nodes []work }

func (m *Machine) enqueue(s driver.Stream, name string, run func() error) driver.Result {
	return m.add(s, work{name: name, run: run})
}

func (m *Machine) add(s driver.Stream, w work) driver.Result {
	to, ok := m.streams[s]
	if !ok {
		return 400 // CUDA_ERROR_INVALID_HANDLE
	}
	if m.options.CountOnly && w.run != nil && w.name != "copy" {
		w.run = func() error { return nil }
	}
	if to.capture != nil {
		to.capture.nodes = append(to.capture.nodes, w)
	} else {
		to.queue = append(to.queue, w)
	}
	return driver.Success
}

// finish runs the work of a stream up to a point.
func (m *Machine) finish(to mark) driver.Result {
	s := to.stream
	for s.started < to.at && m.lost == driver.Success {
		w := s.queue[s.started]
		s.started++
		if w.wait != nil {
			m.finish(*w.wait)
		} else if err := w.run(); err != nil {
			m.lose(driver.IllegalAddress, fmt.Errorf("%s: %w", w.name, err))
		}
	}
	return m.lost
}

func (m *Machine) finishAll() driver.Result {
	for _, s := range m.streams {
		if s.capture != nil {
			s.invalidated = true
			return driver.CaptureUnsupported
		}
		m.finish(mark{s, len(s.queue)})
	}
	return m.lost
}

func (m *Machine) setStreams(a *driver.API) {
	a.StreamCreate = func(out *driver.Stream, _ uint32, _ int32) driver.Result {
		*out = driver.Stream(m.handle())
		m.streams[*out] = &stream{}
		return driver.Success
	}
	a.StreamDestroy = func(s driver.Stream) driver.Result {
		_, ok := m.streams[s]
		if ok {
			m.finish(mark{m.streams[s], len(m.streams[s].queue)})
		}
		delete(m.streams, s)
		return valid(ok)
	}
	a.StreamSynchronize = func(s driver.Stream) driver.Result {
		st, ok := m.streams[s]
		switch {
		case !ok:
			return driver.InvalidValue
		case st.capture != nil:
			st.invalidated = true
			return driver.CaptureUnsupported
		}
		return m.finish(mark{st, len(st.queue)})
	}
}

func (m *Machine) setEvents(a *driver.API) {
	a.EventCreate = func(out *driver.Event, _ uint32) driver.Result {
		*out = driver.Event(m.handle())
		m.events[*out] = &event{}
		return driver.Success
	}
	a.EventDestroy = destroy(m.events)
	a.EventRecord = func(e driver.Event, s driver.Stream) driver.Result {
		st, ok := m.streams[s]
		ev, known := m.events[e]
		if !ok || !known || st.capture != nil {
			return driver.InvalidValue
		}
		ev.recorded, ev.queried = &mark{st, len(st.queue)}, false
		if m.options.EventDelay > 0 {
			ev.at = time.Now()
		}
		return driver.Success
	}
	a.EventQuery = m.queryEvent
	a.EventSynchronize = func(e driver.Event) driver.Result {
		ev, ok := m.events[e]
		if !ok || ev.recorded == nil {
			return valid(ok)
		}
		return m.finish(*ev.recorded)
	}
	a.EventElapsedTime = func(out *float32, from, to driver.Event) driver.Result {
		*out = 1
		return valid(m.events[from] != nil && m.events[to] != nil)
	}
	a.StreamWaitEvent = func(s driver.Stream, e driver.Event, _ uint32) driver.Result {
		ev, ok := m.events[e]
		if !ok || ev.recorded == nil {
			return valid(ok)
		}
		return m.add(s, work{name: "wait", wait: ev.recorded})
	}
}

// queryEvent returns NotReady at least once for an event that is not complete.
func (m *Machine) queryEvent(e driver.Event) driver.Result {
	ev, ok := m.events[e]
	if !ok || ev.recorded == nil {
		return valid(ok)
	}
	if m.options.EventDelay > 0 && time.Since(ev.at) < m.options.EventDelay {
		return driver.NotReady
	}
	if !ev.queried && ev.recorded.stream.started < ev.recorded.at {
		ev.queried = true
		return driver.NotReady
	}
	return m.finish(*ev.recorded)
}

func (m *Machine) setGraphs(a *driver.API) {
	a.StreamBeginCapture = func(s driver.Stream, _ int32) driver.Result {
		st, ok := m.streams[s]
		if !ok || st.capture != nil {
			return driver.InvalidValue
		}
		st.capture, st.invalidated = &graph{}, false
		return driver.Success
	}
	a.StreamEndCapture = func(s driver.Stream, out *driver.Graph) driver.Result {
		st, ok := m.streams[s]
		if !ok || st.capture == nil {
			return driver.InvalidValue
		}
		g, invalidated := st.capture, st.invalidated
		st.capture = nil
		if invalidated {
			return driver.CaptureInvalidated
		}
		*out = driver.Graph(m.handle())
		m.graphs[*out] = g
		return driver.Success
	}
	a.GraphInstantiate = func(out *driver.GraphExec, g driver.Graph, _ uint64) driver.Result {
		from, ok := m.graphs[g]
		if !ok {
			return driver.InvalidValue
		}
		*out = driver.GraphExec(m.handle())
		m.execs[*out] = &graph{nodes: append([]work{}, from.nodes...)}
		return driver.Success
	}
	a.GraphDestroy = destroy(m.graphs)
	a.GraphExecDestroy = destroy(m.execs)
	a.GraphLaunch = func(g driver.GraphExec, s driver.Stream) driver.Result {
		from, ok := m.execs[g]
		if !ok || m.streams[s] == nil {
			return driver.InvalidValue
		}
		for _, w := range from.nodes {
			if r := m.add(s, w); r != driver.Success {
				return r
			}
		}
		return driver.Success
	}
}

// destroy returns the function that destroys an object.
func destroy[K comparable, V any](all map[K]V) func(K) driver.Result {
	return func(x K) driver.Result {
		_, ok := all[x]
		delete(all, x)
		return valid(ok)
	}
}

func (m *Machine) setModules(a *driver.API) {
	a.ModuleLoadData = func(out *driver.Module, image unsafe.Pointer, _ uint32, _ *int32,
		_ *unsafe.Pointer) driver.Result {
		if image == nil {
			return driver.InvalidValue
		}
		*out = driver.Module(m.handle())
		m.modules[*out] = true
		return driver.Success
	}
	a.ModuleGetFunction = func(out *driver.Function, mod driver.Module, name *byte) driver.Result {
		if !m.modules[mod] {
			return driver.InvalidValue
		}
		*out = driver.Function(m.handle())
		m.kernels[*out] = dynlib.String(uintptr(unsafe.Pointer(name)))
		return driver.Success
	}
	a.ModuleUnload = destroy(m.modules)
	a.FuncSetAttribute = func(f driver.Function, at, value int32) driver.Result {
		if m.kernels[f] == "" || at != driver.MaxDynamicShared || value < 0 ||
			value > m.options.mostShared() {
			return driver.InvalidValue
		}
		m.shared[f] = uint32(value)
		return driver.Success
	}
	a.LaunchKernel, a.LaunchCooperative = m.launch, m.launchCooperative
}
