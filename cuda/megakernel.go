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
// launch: see kernels.CommandList. What does not march is sent by itself, behind what was collected of
// earlier waves. It is the owner's.
type megakernel struct {
	ex         *executor
	commands   kernels.CommandList
	launches   uint64       // of the march that is collected
	list       *commandList // that it is written to; nil: nothing is collected
	freeLists  []*commandList
	deviceList block
	counter    block // of blocks that have arrived
	blocks     int
	maxBytes   int  // of a list at most
	maxThreads int  // threads of a call that marches, and numbers of a vector that is combined
	base       int  // the first phase of the wave
	refused    bool // the driver has refused a march
}

// sheet is pinned memory for a list.
type commandList struct {
	buffer  *buffer
	release func() // gives it back once the GPU has read it
}

const (
	// marchThreads is how many threads a call has that marches: more fill a GPU by themselves,
	// which then hides what memory takes better than by the few threads of a march.
	megakernelThreads = 1 << 18
	// marchCopy is how many bytes the GPU fetches from the host's memory in a march, and not by a
	// copy engine.
	megakernelCopyBytes = 128 << 10
	// marchFLOPs is how many operations the gradient of an agent takes that marches.
	megakernelFLOPs = 3e8
)

// LaunchesVariable is the environment variable that, where it is not empty, does what [Launches]
// does.
const SeparateLaunchesVariable = "FSPDA_CUDA_LAUNCHES"

// Launches sends each kernel in a launch of its own where yes is true, as on a GPU that has no
// cooperative launches.
func SeparateLaunches(yes bool) Option {
	return func(d *Device) error {
		d.separateLaunches = yes
		return nil
	}
}

// startMarching makes the marcher of a device that is good for it. Without one everything is
// launched.
func (d *Device) startMegakernel() error {
	ex := d.exec
	if d.separateLaunches || os.Getenv(SeparateLaunchesVariable) != "" || !d.properties.Cooperative || ex.api.LaunchCooperative == nil {
		return nil
	}
	m := &megakernel{ex: ex, blocks: d.properties.Multiprocessors, maxBytes: bufferSizes[commandListClass], maxThreads: megakernelThreads}
	var err error
	if m.deviceList, err = ex.alloc(m.maxBytes); err != nil {
		return err
	}
	if m.counter, err = ex.alloc(4); err != nil {
		return err
	}
	if err := ex.api.Check(ex.api.MemsetD8(m.counter.at, 0, 4, ex.stream), "cuMemsetD8Async",
		"clearing a count"); err != nil {
		return err
	}
	good, err := m.probe()
	if good {
		ex.mega = m
	}
	return err
}

// classOfSheet is the class of buffers for lists: middling ones.
const commandListClass = 1

// try marches through the host's memory and back. It is false where the driver refuses: under MPS a
// process may have fewer multiprocessors than the GPU.
func (m *megakernel) probe() (good bool, err error) {
	ex := m.ex
	back, err := ex.buffer(bufferClass(16))
	if err != nil {
		return false, err
	}
	defer func() {
		clear(back.bytes[:16])
		ex.pinned.put(back)
	}()
	clear(back.bytes[:16])
	if err := m.begin(); err != nil {
		return false, err
	}
	word, at := m.commands.Data(16)
	copy(word, "a march has come")
	for phase := range 3 {
		m.commands.Add(phase, kernels.Copy(back.address()+kernels.Address(4*phase), at+kernels.Address(4*phase), 4-phase))
	}
	sent := m.launch()
	m.freeLists, m.list = append(m.freeLists, m.list), nil
	if err := ex.syncWithin(probeTimeout); err != nil {
		return false, err
	}
	if isRefusal(sent) {
		sent = nil
	} else {
		good = string(back.bytes[:16]) == "a march has come"
	}
	if !good {
		ex.pinned.put(m.freeLists[0].buffer)
	}
	return good, sent
}

// marchPatience is how long the first march may take: others may be using the GPU.
const probeTimeout = 20 * time.Second

// reachWithin waits until the GPU has done all that was sent. Where that takes longer the GPU is
// given up, for nothing comes behind work that stands still.
func (ex *executor) syncWithin(most time.Duration) error {
	e, err := ex.takeEvent()
	if err != nil {
		return err
	}
	defer func() { ex.idleEvents = append(ex.idleEvents, e) }()
	if err := ex.record(e, ex.stream); err != nil {
		return err
	}
	for begin := time.Now(); ; time.Sleep(50 * time.Microsecond) {
		r := ex.api.EventQuery(e)
		if r != driver.NotReady {
			return ex.api.Check(r, "cuEventQuery", "waiting for the GPU")
		}
		if time.Since(begin) > most {
			ex.hung = true
			return fmt.Errorf("cuda: a cooperative launch has not ended after %v: end what else uses the GPU, or set %s=1, which does without such launches", most, SeparateLaunchesVariable)
		}
	}
}

// refused tells whether the driver did not make a cooperative launch, and nothing else is wrong.
func isRefusal(err error) bool {
	var e *driver.Error
	return errors.As(err, &e) && (e.Result == driver.CooperativeLaunchTooLarge || e.Result == driver.NotSupported)
}

// address is where a pinned buffer lies for the GPU: where it does for the host, as with all that
// the driver gives.
func (b *buffer) address() kernels.Address { return kernels.Address(uintptr(b.pointer())) }

// takes tells whether a call marches.
func (m *megakernel) accepts(c kernels.Call) bool {
	if m == nil || c.Kernel == nil || !c.Listable() {
		return false
	}
	threads := uint64(c.Block[0]) * uint64(c.Grid[0]) * uint64(c.Grid[1]) * uint64(c.Grid[2])
	return threads <= uint64(m.maxThreads)
}

// order puts ops that march behind those that do not: these would split what is collected.
func (m *megakernel) deferAccepted(ops []*op) {
	if m == nil {
		return
	}
	slices.SortStableFunc(ops, func(a, b *op) int {
		switch x, y := m.accepts(a.call), m.accepts(b.call); {
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
func (m *megakernel) reserve(phases, steps, args, data int) (bool, error) {
	if m.list != nil && !m.commands.Fits(m.base+phases, steps, args, data) {
		if err := m.flush(); err != nil {
			return false, err
		}
	}
	if m.list == nil {
		if err := m.begin(); err != nil {
			return false, err
		}
	}
	return m.commands.Fits(m.base+phases, steps, args, data), nil
}

// open begins a list.
func (m *megakernel) begin() error {
	if n := len(m.freeLists); n > 0 {
		m.list, m.freeLists = m.freeLists[n-1], m.freeLists[:n-1]
	} else {
		b, err := m.ex.buffer(commandListClass)
		if err != nil {
			return err
		}
		s := &commandList{buffer: b}
		s.release = func() { m.freeLists = append(m.freeLists, s) }
		m.list = s
	}
	m.commands.Reset(m.deviceList.address(), m.list.buffer.bytes[:m.maxBytes])
	m.base = 0
	return nil
}

// step collects a call.
func (m *megakernel) append(c kernels.Call) error {
	fits, err := m.reserve(1, 1, len(c.Args), 0)
	if err != nil {
		return err
	}
	if !fits {
		return fmt.Errorf("cuda: %s has no room in a march of %d bytes", c.Kernel.Name, m.maxBytes)
	}
	m.commands.Add(m.base, c)
	return nil
}

// next begins a wave, which comes behind what was collected.
func (m *megakernel) nextLevel() {
	if m != nil && m.list != nil {
		m.base = m.commands.Phases()
	}
}

// halt sends what was collected.
func (m *megakernel) flush() error {
	if m == nil || m.list == nil {
		return nil
	}
	defer m.end()
	if m.ex.err() != nil || m.commands.Len() == 0 {
		return nil
	}
	err := m.launch()
	if isRefusal(err) {
		m.refused = true
		return m.launchEach()
	}
	return err
}

// send launches the march, or its only call.
func (m *megakernel) launch() error {
	if m.refused {
		return m.launchEach()
	}
	if m.commands.Len() == 1 && !m.commands.HasData() {
		return m.ex.launch(m.commands.Calls()...)
	}
	return m.ex.launch(m.commands.Call(m.list.buffer.address(), m.counter.address(), m.blocks))
}

// walk does what was to be a march by launches.
func (m *megakernel) launchEach() error {
	ex, b := m.ex, m.commands.Bytes()
	if err := ex.api.Check(ex.api.MemcpyHtoD(m.deviceList.at, unsafe.Pointer(&b[0]), uintptr(len(b)), ex.stream),
		"cuMemcpyHtoDAsync", "copying a list of %d steps", m.commands.Len()); err != nil {
		return err
	}
	return ex.launch(m.commands.Calls()...)
}

// close ends the list, whose memory comes back when the GPU has come so far.
func (m *megakernel) end() {
	m.ex.ops.computed = append(m.ex.ops.computed, m.list.release)
	m.list = nil
	m.launches++
}
