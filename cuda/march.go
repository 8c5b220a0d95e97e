package cuda

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"
	"unsafe"

	"fspda/cuda/driver"
	"fspda/cuda/kernels"
)

// marcher collects what a window does on small vectors and with small networks, and sends it in one
// launch: see kernels.March. What does not march is sent by itself, behind what was collected of
// earlier waves. It is the owner's.
type marcher struct {
	o      *owner
	list   kernels.March
	number uint64 // of the march that is collected
	sheet  *sheet // that it is written to; nil: nothing is collected
	idle   []*sheet
	room   block
	count  block // of blocks that have arrived
	blocks int
	bytes  int  // of a list at most
	most   int  // threads of a call that marches, and numbers of a vector that is combined
	base   int  // the first phase of the wave
	walks  bool // the driver has refused a march
}

// sheet is pinned memory for a list.
type sheet struct {
	b    *buffer
	give func() // gives it back once the GPU has read it
}

const (
	// marchThreads is how many threads a call has that marches: more fill a GPU by themselves,
	// which then hides what memory takes better than by the few threads of a march.
	marchThreads = 1 << 18
	// marchCopy is how many bytes the GPU fetches from the host's memory in a march, and not by a
	// copy engine.
	marchCopy = 128 << 10
	// marchFLOPs is how many operations the gradient of an agent takes that marches.
	marchFLOPs = 3e8
)

// LaunchesVariable is the environment variable that, where it is not empty, does what [Launches]
// does.
const LaunchesVariable = "FSPDA_CUDA_LAUNCHES"

// Launches sends each kernel in a launch of its own where yes is true, as on a GPU that has no
// cooperative launches.
func Launches(yes bool) Option {
	return func(d *Device) error {
		d.launches = yes
		return nil
	}
}

// startMarching makes the marcher of a device that is good for it. Without one everything is
// launched.
func (d *Device) startMarching() error {
	o := d.owner
	if d.launches || os.Getenv(LaunchesVariable) != "" || !d.properties.Cooperative || o.api.LaunchTogether == nil {
		return nil
	}
	m := &marcher{o: o, blocks: d.properties.Multiprocessors, bytes: bufferSize[classOfSheet], most: marchThreads}
	var err error
	if m.room, err = o.alloc(m.bytes); err != nil {
		return err
	}
	if m.count, err = o.alloc(4); err != nil {
		return err
	}
	if err := o.api.Check(o.api.MemsetD8(m.count.at, 0, 4, o.stream), "cuMemsetD8Async",
		"clearing a count"); err != nil {
		return err
	}
	good, err := m.try()
	if good {
		o.march = m
	}
	return err
}

// classOfSheet is the class of buffers for lists: middling ones.
const classOfSheet = 1

// try marches through the host's memory and back. It is false where the driver refuses: under MPS a
// process may have fewer multiprocessors than the GPU.
func (m *marcher) try() (good bool, err error) {
	o := m.o
	back, err := o.newBuffer(classOfBuffer(16))
	if err != nil {
		return false, err
	}
	defer func() {
		clear(back.bytes[:16])
		o.pinned.give(back)
	}()
	clear(back.bytes[:16])
	if err := m.open(); err != nil {
		return false, err
	}
	word, at := m.list.Data(16)
	copy(word, "a march has come")
	for phase := range 3 {
		m.list.Add(phase, kernels.Copy(back.address()+kernels.Address(4*phase), at+kernels.Address(4*phase), 4-phase))
	}
	sent := m.send()
	m.idle, m.sheet = append(m.idle, m.sheet), nil
	if err := o.reachWithin(marchPatience); err != nil {
		return false, err
	}
	if refused(sent) {
		sent = nil
	} else {
		good = string(back.bytes[:16]) == "a march has come"
	}
	if !good {
		o.pinned.give(m.idle[0].b)
	}
	return good, sent
}

// marchPatience is how long the first march may take: others may be using the GPU.
const marchPatience = 20 * time.Second

// reachWithin waits until the GPU has done all that was sent. Where that takes longer the GPU is
// given up, for nothing comes behind work that stands still.
func (o *owner) reachWithin(most time.Duration) error {
	e, err := o.event()
	if err != nil {
		return err
	}
	defer func() { o.events = append(o.events, e) }()
	if err := o.record(e, o.stream); err != nil {
		return err
	}
	for begin := time.Now(); ; time.Sleep(50 * time.Microsecond) {
		r := o.api.EventQuery(e)
		if r != driver.NotReady {
			return o.api.Check(r, "cuEventQuery", "waiting for the GPU")
		}
		if time.Since(begin) > most {
			o.stuck = true
			return fmt.Errorf("cuda: a cooperative launch has not ended after %v: end what else uses the GPU, or set %s=1, which does without such launches", most, LaunchesVariable)
		}
	}
}

// refused tells whether the driver did not make a cooperative launch, and nothing else is wrong.
func refused(err error) bool {
	var e *driver.Error
	return errors.As(err, &e) && (e.Result == driver.TooManyTogether || e.Result == driver.NotSupported)
}

// address is where a pinned buffer lies for the GPU: where it does for the host, as with all that
// the driver gives.
func (b *buffer) address() kernels.Address { return kernels.Address(uintptr(b.pointer())) }

// takes tells whether a call marches.
func (m *marcher) takes(c kernels.Call) bool {
	if m == nil || c.Kernel == nil || !c.Marches() {
		return false
	}
	threads := uint64(c.Block[0]) * uint64(c.Grid[0]) * uint64(c.Grid[1]) * uint64(c.Grid[2])
	return threads <= uint64(m.most)
}

// order puts ops that march behind those that do not: these would split what is collected.
func (m *marcher) order(ops []*op) {
	if m == nil {
		return
	}
	slices.SortStableFunc(ops, func(a, b *op) int {
		switch x, y := m.takes(a.call), m.takes(b.call); {
		case x == y:
			return 0
		case x:
			return 1
		}
		return -1
	})
}

// reserve makes room in the list for so much, and halts what was collected where there is too
// little. It is false where a list is too short.
func (m *marcher) reserve(phases, steps, args, data int) (bool, error) {
	if m.sheet != nil && !m.list.Fits(m.base+phases, steps, args, data) {
		if err := m.halt(); err != nil {
			return false, err
		}
	}
	if m.sheet == nil {
		if err := m.open(); err != nil {
			return false, err
		}
	}
	return m.list.Fits(m.base+phases, steps, args, data), nil
}

// open begins a list.
func (m *marcher) open() error {
	if n := len(m.idle); n > 0 {
		m.sheet, m.idle = m.idle[n-1], m.idle[:n-1]
	} else {
		b, err := m.o.newBuffer(classOfSheet)
		if err != nil {
			return err
		}
		s := &sheet{b: b}
		s.give = func() { m.idle = append(m.idle, s) }
		m.sheet = s
	}
	m.list.Begin(m.room.address(), m.sheet.b.bytes[:m.bytes])
	m.base = 0
	return nil
}

// step collects a call.
func (m *marcher) step(c kernels.Call) error {
	fits, err := m.reserve(1, 1, len(c.Args), 0)
	if err != nil {
		return err
	}
	if !fits {
		return fmt.Errorf("cuda: %s has no room in a march of %d bytes", c.Kernel.Name, m.bytes)
	}
	m.list.Add(m.base, c)
	return nil
}

// next begins a wave, which comes behind what was collected.
func (m *marcher) next() {
	if m != nil && m.sheet != nil {
		m.base = m.list.Phases()
	}
}

// halt sends what was collected.
func (m *marcher) halt() error {
	if m == nil || m.sheet == nil {
		return nil
	}
	defer m.close()
	if m.o.err() != nil || m.list.Steps() == 0 {
		return nil
	}
	err := m.send()
	if refused(err) {
		m.walks = true
		return m.walk()
	}
	return err
}

// send launches the march, or its only call.
func (m *marcher) send() error {
	if m.walks {
		return m.walk()
	}
	if m.list.Steps() == 1 && m.list.Bare() {
		return m.o.launch(m.list.All()...)
	}
	return m.o.launch(m.list.Call(m.sheet.b.address(), m.count.address(), m.blocks))
}

// walk does what was to be a march by launches.
func (m *marcher) walk() error {
	o, b := m.o, m.list.Bytes()
	if err := o.api.Check(o.api.MemcpyHtoD(m.room.at, unsafe.Pointer(&b[0]), uintptr(len(b)), o.stream),
		"cuMemcpyHtoDAsync", "copying a list of %d steps", m.list.Steps()); err != nil {
		return err
	}
	return o.launch(m.list.All()...)
}

// close ends the list, whose memory comes back when the GPU has come so far.
func (m *marcher) close() {
	m.o.window.computed = append(m.o.window.computed, m.sheet.give)
	m.sheet = nil
	m.number++
}
