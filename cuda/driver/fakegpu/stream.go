package fakegpu

import (
	"fmt"
	"time"
	"unsafe"

	"fspda/cuda/driver"
)

// stream is work in order. It is done when somebody waits for it.
type stream struct {
	queue   []work
	begun   int    // works of the queue that are done or under way
	capture *graph // nil: work is queued
	broken  bool   // the capture is
}

// work is one thing that a stream does.
type work struct {
	name string
	run  func() error
	wait *mark // not nil: it waits for that instead
}

// mark is a place in a stream's work.
type mark struct {
	stream *stream
	at     int // works before it
}

type event struct {
	recorded *mark
	asked    bool // since it was recorded
	at       time.Time
}

// graph is captured work.
type graph struct{ nodes []work }

func (m *Machine) enqueue(s driver.Stream, name string, run func() error) driver.Result {
	return m.add(s, work{name: name, run: run})
}

func (m *Machine) add(s driver.Stream, w work) driver.Result {
	to, ok := m.streams[s]
	if !ok {
		return 400 // invalid handle
	}
	if m.options.Counts && w.run != nil && w.name != "copy" {
		w.run = func() error { return nil }
	}
	if to.capture != nil {
		to.capture.nodes = append(to.capture.nodes, w)
	} else {
		to.queue = append(to.queue, w)
	}
	return driver.Success
}

// finish does the work of a stream up to a place.
func (m *Machine) finish(to mark) driver.Result {
	s := to.stream
	for s.begun < to.at && m.lost == driver.Success {
		w := s.queue[s.begun]
		s.begun++
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
			s.broken = true
			return driver.CaptureUnsupported
		}
		m.finish(mark{s, len(s.queue)})
	}
	return m.lost
}

func (m *Machine) fillStreams(a *driver.API) {
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
			st.broken = true
			return driver.CaptureUnsupported
		}
		return m.finish(mark{st, len(st.queue)})
	}
	a.EventCreate = func(out *driver.Event, _ uint32) driver.Result {
		*out = driver.Event(m.handle())
		m.events[*out] = &event{}
		return driver.Success
	}
	a.EventDestroy = func(e driver.Event) driver.Result {
		_, ok := m.events[e]
		delete(m.events, e)
		return valid(ok)
	}
	a.EventRecord = func(e driver.Event, s driver.Stream) driver.Result {
		st, ok := m.streams[s]
		ev, known := m.events[e]
		if !ok || !known || st.capture != nil {
			return driver.InvalidValue
		}
		ev.recorded, ev.asked = &mark{st, len(st.queue)}, false
		if m.options.Takes > 0 {
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

// queryEvent says once that the event is still to come.
func (m *Machine) queryEvent(e driver.Event) driver.Result {
	ev, ok := m.events[e]
	if !ok || ev.recorded == nil {
		return valid(ok)
	}
	if m.options.Takes > 0 && time.Since(ev.at) < m.options.Takes {
		return driver.NotReady
	}
	if !ev.asked && ev.recorded.stream.begun < ev.recorded.at {
		ev.asked = true
		return driver.NotReady
	}
	return m.finish(*ev.recorded)
}

func (m *Machine) fillGraphs(a *driver.API) {
	m.fillModules(a)
	a.StreamBeginCapture = func(s driver.Stream, _ int32) driver.Result {
		st, ok := m.streams[s]
		if !ok || st.capture != nil {
			return driver.InvalidValue
		}
		st.capture, st.broken = &graph{}, false
		return driver.Success
	}
	a.StreamEndCapture = func(s driver.Stream, out *driver.Graph) driver.Result {
		st, ok := m.streams[s]
		if !ok || st.capture == nil {
			return driver.InvalidValue
		}
		g, broken := st.capture, st.broken
		st.capture = nil
		if broken {
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
	a.GraphDestroy = func(g driver.Graph) driver.Result {
		_, ok := m.graphs[g]
		delete(m.graphs, g)
		return valid(ok)
	}
	a.GraphExecDestroy = func(g driver.GraphExec) driver.Result {
		_, ok := m.execs[g]
		delete(m.execs, g)
		return valid(ok)
	}
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

func (m *Machine) fillModules(a *driver.API) {
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
		m.kernels[*out] = text(name)
		return driver.Success
	}
	a.ModuleUnload = func(mod driver.Module) driver.Result {
		ok := m.modules[mod]
		delete(m.modules, mod)
		return valid(ok)
	}
	a.FuncSetAttribute = func(f driver.Function, _ driver.FuncAttribute, _ int32) driver.Result {
		return valid(m.kernels[f] != "")
	}
	a.LaunchKernel, a.LaunchTogether = m.launch, m.launchTogether
}

func text(p *byte) string {
	var b []byte
	for ; *p != 0; p = (*byte)(unsafe.Add(unsafe.Pointer(p), 1)) {
		b = append(b, *p)
	}
	return string(b)
}
