package fakegpu

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"fspda/cuda/driver"
)

// Options is what a machine has.
type Options struct {
	GPUs        int     // default 1
	Memory      uintptr // of each, default 1 GB
	CC          int     // compute capability, default 90
	Version     int     // of the driver, default 13000
	NoPeers     bool    // GPUs do not reach each other's memory
	NotTogether bool    // no cooperative launches
	// memory of GPUs is counted and not there: nothing is computed, and what is read from it is
	// zero
	Counts bool
	// from the recording of an event until it can be reached: the work before it takes so long
	Takes time.Duration
}

// Machine is a computer with GPUs.
type Machine struct {
	mu       sync.Mutex
	params   Params
	run      func(Launch) error
	options  Options
	current  map[int]driver.Context // by thread
	retained map[driver.Device]int
	peers    map[[2]driver.Context]bool
	next     uintptr // handle
	device   memory
	used     uintptr
	host     memory
	modules  map[driver.Module]bool
	kernels  map[driver.Function]string
	streams  map[driver.Stream]*stream
	events   map[driver.Event]*event
	graphs   map[driver.Graph]*graph
	execs    map[driver.GraphExec]*graph
	calls    []string
	counts   map[string]int
	faults   map[string]fault
	lost     driver.Result
	why      error // of lost
}

// fault makes a call fail once that many have been made.
type fault struct {
	after  int
	result driver.Result
	stays  bool
}

// New returns a machine.
func New(o Options) *Machine {
	if o.GPUs == 0 {
		o.GPUs = 1
	}
	if o.Memory == 0 {
		o.Memory = 1 << 30
	}
	if o.CC == 0 {
		o.CC = 90
	}
	if o.Version == 0 {
		o.Version = 13000
	}
	return &Machine{options: o, device: memory{counts: o.Counts, next: 1 << 40}, current: map[int]driver.Context{},
		retained: map[driver.Device]int{}, peers: map[[2]driver.Context]bool{}, next: 0x1000, modules: map[driver.Module]bool{},
		kernels: map[driver.Function]string{}, streams: map[driver.Stream]*stream{}, events: map[driver.Event]*event{},
		graphs: map[driver.Graph]*graph{}, execs: map[driver.GraphExec]*graph{}, counts: map[string]int{}, faults: map[string]fault{}}
}

// API returns the functions of the driver on this machine. Each does what the driver's does, after
// it has been written down.
func (m *Machine) API() *driver.API {
	a := &driver.API{}
	m.fillDevice(a)
	m.fillMemory(a)
	m.fillStreams(a)
	m.fillGraphs(a)
	for _, table := range []any{a, &a.Hot} {
		v := reflect.ValueOf(table).Elem()
		for i := range v.NumField() {
			if f := v.Field(i); f.Kind() == reflect.Func && !f.IsNil() {
				f.Set(m.watched(v.Type().Field(i).Name, f.Interface()))
			}
		}
	}
	return a
}

// withoutContext are the calls that need none.
var withoutContext = []string{"Init", "DriverGetVersion", "GetErrorName", "GetErrorString", "DeviceGetCount",
	"DeviceGet", "DeviceGetName", "DeviceTotalMem",
	"DeviceGetAttr", "DeviceCanAccess", "PrimaryCtxRetain", "PrimaryCtxRelease", "CtxSetCurrent"}

// watched is f under the lock, with its calls written down and its faults.
func (m *Machine) watched(name string, f any) reflect.Value {
	inner := reflect.ValueOf(f)
	return reflect.MakeFunc(inner.Type(), func(args []reflect.Value) []reflect.Value {
		m.mu.Lock()
		defer m.mu.Unlock()
		if r := m.enter(name); r != driver.Success {
			return []reflect.Value{reflect.ValueOf(r)}
		}
		return inner.Call(args)
	})
}

func (m *Machine) enter(name string) driver.Result {
	m.calls = append(m.calls, name)
	m.counts[name]++
	if f, ok := m.faults[name]; ok {
		if f.after--; f.after < 0 {
			if !f.stays {
				delete(m.faults, name)
			}
			if f.result.Sticky() {
				m.lost = f.result
			}
			return f.result
		}
		m.faults[name] = f
	}
	if slices.Contains(withoutContext, name) {
		return driver.Success
	}
	if m.lost != driver.Success {
		return m.lost
	}
	if m.current[syscall.Gettid()] == 0 {
		return driver.InvalidContext
	}
	return driver.Success
}

// Fail makes the call after the next n of that name return r, once; a result that loses the device
// loses it.
func (m *Machine) Fail(name string, n int, r driver.Result) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults[name] = fault{after: n, result: r}
}

// FailFrom is Fail for that call and all that follow.
func (m *Machine) FailFrom(name string, n int, r driver.Result) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults[name] = fault{after: n, result: r, stays: true}
}

// Lose makes all calls fail from now on, as after a kernel that crashed.
func (m *Machine) Lose(r driver.Result) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lost = r
}

// Lost is what made the device fail, if it is lost by its own work.
func (m *Machine) Lost() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.why
}

// Calls returns the names of all calls since the last time.
func (m *Machine) Calls() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.calls
	m.calls = nil
	return c
}

// Count is how often a function was called.
func (m *Machine) Count(name string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.counts[name]
}

// Used is the device memory that is allocated.
func (m *Machine) Used() uintptr {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used
}

// Leaks lists what was made and not given back.
func (m *Machine) Leaks() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []string
	add := func(n int, what string) {
		if n > 0 {
			all = append(all, fmt.Sprintf("%d %s", n, what))
		}
	}
	add(len(m.device.blocks), "allocations of device memory")
	add(len(m.host.blocks), "allocations of pinned memory")
	add(len(m.modules), "modules")
	add(len(m.streams), "streams")
	add(len(m.events), "events")
	add(len(m.graphs), "graphs")
	add(len(m.execs), "executable graphs")
	held := 0
	for n := range maps.Values(m.retained) {
		held += n
	}
	add(held, "contexts")
	return all
}

// NoLeaks reports what was not given back.
func (m *Machine) NoLeaks(t testing.TB) {
	t.Helper()
	for _, l := range m.Leaks() {
		t.Errorf("not given back: %s", l)
	}
}

func (m *Machine) handle() uintptr {
	m.next += 16
	return m.next
}

// lose breaks the device by its own work.
func (m *Machine) lose(r driver.Result, why error) {
	if m.lost == driver.Success {
		m.lost, m.why = r, why
	}
}
