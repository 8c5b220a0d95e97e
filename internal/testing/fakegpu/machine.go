package fakegpu

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"fspda/cuda/driver"
)

// Options describes a machine.
type Options struct {
	GPUs          int     // default 1
	Memory        uintptr // bytes per GPU, default 1 GiB
	CC            int     // compute capability, default 90
	Version       int     // version of the driver, default 13000
	NoPeers       bool    // GPUs cannot access each other's memory
	NoCooperative bool    // no cooperative launches

	// CountOnly counts device memory without backing it: nothing is computed, and copies from it
	// read zeros.
	CountOnly bool
	// EventDelay is the time from recording an event until it can complete, as if the work before
	// it took that long.
	EventDelay time.Duration
}

// Machine is a computer with fake GPUs.
type Machine struct {
	mu       sync.Mutex
	options  Options
	params   Params
	run      func(Launch) error
	current  map[int]driver.Context // current context by thread
	retained map[driver.Device]int  // retain count of the primary context
	peers    map[[2]driver.Context]bool
	device   memory
	used     uintptr // bytes of device memory
	host     memory  // pinned
	handles
	counts map[string]int // calls by function
	faults map[string]fault
	lost   driver.Result // result of every call once the device is lost
	why    error         // reason why it was lost
}

// handles holds the live objects of the driver.
type handles struct {
	last    uintptr // last handle value
	modules map[driver.Module]bool
	kernels map[driver.Function]string // names
	shared  map[driver.Function]uint32 // the dynamic shared memory that was asked for
	streams map[driver.Stream]*stream
	events  map[driver.Event]*event
	graphs  map[driver.Graph]*graph
	execs   map[driver.GraphExec]*graph
}

// fault makes a function fail after a number of successful calls.
type fault struct {
	after     int
	result    driver.Result
	permanent bool
}

// New returns a machine.
func New(o Options) *Machine {
	o.GPUs = cmp.Or(o.GPUs, 1)
	o.Memory = cmp.Or(o.Memory, 1<<30)
	o.CC = cmp.Or(o.CC, 90)
	o.Version = cmp.Or(o.Version, 13000)
	return &Machine{
		options:  o,
		device:   memory{countOnly: o.CountOnly, next: 1 << 40},
		current:  map[int]driver.Context{},
		retained: map[driver.Device]int{},
		peers:    map[[2]driver.Context]bool{},
		handles: handles{
			last:    0x1000,
			modules: map[driver.Module]bool{},
			kernels: map[driver.Function]string{}, shared: map[driver.Function]uint32{},
			streams: map[driver.Stream]*stream{},
			events:  map[driver.Event]*event{},
			graphs:  map[driver.Graph]*graph{},
			execs:   map[driver.GraphExec]*graph{},
		},
		counts: map[string]int{},
		faults: map[string]fault{},
	}
}

// API returns the driver functions of this machine. Each call is recorded before it is carried out.
func (m *Machine) API() *driver.API {
	a := &driver.API{}
	m.setDevice(a)
	m.setContext(a)
	m.setMemory(a)
	m.setCopies(a)
	m.setStreams(a)
	m.setEvents(a)
	m.setGraphs(a)
	m.setModules(a)
	v := reflect.ValueOf(a).Elem()
	for _, field := range reflect.VisibleFields(v.Type()) {
		if f := v.FieldByIndex(field.Index); f.Kind() == reflect.Func && !f.IsNil() {
			f.Set(m.recorded(field.Name, f.Interface()))
		}
	}
	return a
}

// withoutContext lists the functions that need no current context.
var withoutContext = []string{"Init", "DriverGetVersion", "GetErrorName", "GetErrorString", "DeviceGetCount",
	"DeviceGet", "DeviceGetName", "DeviceTotalMem", "DeviceGetAttr", "DeviceCanAccess", "PrimaryCtxRetain",
	"PrimaryCtxRelease", "CtxSetCurrent"}

// recorded wraps f: it holds the lock, records the call and applies the faults.
func (m *Machine) recorded(name string, f any) reflect.Value {
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

// enter records a call, and returns the result with which it fails before it does anything.
func (m *Machine) enter(name string) driver.Result {
	m.counts[name]++
	if f, ok := m.faults[name]; ok {
		if f.after--; f.after < 0 {
			if !f.permanent {
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
	if m.current[thread()] == 0 {
		return driver.InvalidContext
	}
	return driver.Success
}

// Fail lets the next n calls of a function succeed and makes the one after return r. A sticky
// result loses the device.
func (m *Machine) Fail(name string, n int, r driver.Result) {
	m.setFault(name, fault{after: n, result: r})
}

// FailFrom is Fail for that call and all later ones.
func (m *Machine) FailFrom(name string, n int, r driver.Result) {
	m.setFault(name, fault{after: n, result: r, permanent: true})
}

func (m *Machine) setFault(name string, f fault) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults[name] = f
}

// Lose makes all later calls fail with r, as after a kernel that crashed.
func (m *Machine) Lose(r driver.Result) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lost = r
}

// LossCause returns the error of the queued work that lost the device, or nil.
func (m *Machine) LossCause() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.why
}

// Count returns the number of calls of a function.
func (m *Machine) Count(name string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.counts[name]
}

// Used returns the bytes of device memory that are allocated.
func (m *Machine) Used() uintptr {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used
}

// Leaks lists the objects that were created and not freed.
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
	contexts := 0
	for n := range maps.Values(m.retained) {
		contexts += n
	}
	add(contexts, "contexts")
	return all
}

// CheckLeaks fails the test for everything that was not freed.
func (m *Machine) CheckLeaks(t testing.TB) {
	t.Helper()
	for _, l := range m.Leaks() {
		t.Errorf("not freed: %s", l)
	}
}

func (h *handles) handle() uintptr {
	h.last += 16
	return h.last
}

// lose marks the device as lost by its own work.
func (m *Machine) lose(r driver.Result, why error) {
	if m.lost == driver.Success {
		m.lost, m.why = r, why
	}
}
