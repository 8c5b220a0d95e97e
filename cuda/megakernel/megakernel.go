package megakernel

import (
	"errors"
	"fmt"
	"slices"
	"time"
	"unsafe"

	"fspda/cuda/driver"
	"fspda/cuda/executor"
	"fspda/cuda/kernels"
)

// Megakernel collects the small kernels of several levels and runs them in one cooperative launch:
// see kernels.CommandList. Larger kernels have launches of their own. It belongs to the executor.
type Megakernel struct {
	ex         *executor.Executor
	Commands   kernels.CommandList // the list that is collected
	list       *commandList        // its memory; nil: nothing is collected
	freeLists  []*commandList
	deviceList executor.Block // the list's copy on the device
	counter    executor.Block // counts the thread blocks that have arrived at a barrier
	blocks     int            // thread blocks of a launch
	MaxBytes   int            // the most bytes of a list
	MaxThreads int            // the most threads of a call, and the most numbers of a vector that is combined
	Phase      int            // the first phase of the current level
	next       int            // the first phase of the next level
	Launches   uint64
	refused    bool     // the driver has refused a launch, so that each call has a launch of its own
	profile    *profile // measures launches; nil: none are measured
}

// commandList is pinned memory for a list of kernel calls.
type commandList struct {
	buffer  *executor.Buffer
	release func() // called when the GPU has read the list
}

// maxThreads is the most threads of a call in a megakernel. Larger calls fill a GPU alone, and hide
// the latency of memory better than the few threads of a megakernel.
const maxThreads = 1 << 18

// Start makes the megakernel of an executor's GPU, with a block for each multiprocessor, and has
// the executor use it. It returns nil if a probe shows that the driver does not run it.
func Start(ex *executor.Executor, multiprocessors int) (m *Megakernel, err error) {
	m = &Megakernel{ex: ex, blocks: multiprocessors, MaxBytes: executor.MediumBytes, MaxThreads: maxThreads}
	if m.deviceList, err = ex.Alloc(m.MaxBytes); err != nil {
		return nil, err
	}
	if m.counter, err = ex.Alloc(4); err != nil {
		return nil, err
	}
	if err := ex.SetBytes(m.counter.At, 0, 4); err != nil {
		return nil, err
	}
	runs, err := m.probe()
	if err != nil || !runs {
		return nil, err
	}
	ex.Collector = m
	return m, nil
}

// probe copies a word from host memory to host memory by a megakernel. It is false where the driver
// refuses the launch: under MPS a process may have fewer multiprocessors than the GPU.
func (m *Megakernel) probe() (runs bool, err error) {
	ex := m.ex
	back, err := ex.AllocBuffer(16)
	if err != nil {
		return false, err
	}
	defer func() {
		clear(back.Bytes[:16])
		ex.PutBuffer(back)
	}()
	clear(back.Bytes[:16])
	if err := m.begin(); err != nil {
		return false, err
	}
	const text = "megakernel probe"
	word, at := m.Commands.Data(16)
	copy(word, text)
	for phase := range 3 {
		m.Commands.Add(phase, kernels.Copy(back.Address()+kernels.Address(4*phase), at+kernels.Address(4*phase),
			4-phase))
	}
	sent := m.launch()
	m.freeLists, m.list = append(m.freeLists, m.list), nil
	if err := ex.SyncWithin(probeTimeout); err != nil {
		return false, err
	}
	if isRefusal(sent) {
		sent = nil
	} else {
		runs = string(back.Bytes[:16]) == text
	}
	if !runs {
		ex.PutBuffer(m.freeLists[0].buffer)
	}
	return runs, sent
}

// probeTimeout is how long the probe may take: others may be using the GPU.
const probeTimeout = 20 * time.Second

// isRefusal reports whether the driver did not make a cooperative launch, and nothing else is
// wrong.
func isRefusal(err error) bool {
	var e *driver.Error
	return errors.As(err, &e) && (e.Result == driver.CooperativeLaunchTooLarge || e.Result == driver.NotSupported)
}

func (m *Megakernel) Accepts(c kernels.Call) bool {
	if c.Kernel == nil || !c.Listable() {
		return false
	}
	threads := uint64(c.Block[0]) * uint64(c.Grid[0]) * uint64(c.Grid[1]) * uint64(c.Grid[2])
	return threads <= uint64(m.MaxThreads)
}

func (m *Megakernel) AcceptsVectors(n int) bool { return n <= m.MaxThreads }

// Reserve makes space in the list for phases, steps, arguments and bytes of data. If there is too
// little, it launches the list first. It is false if even an empty list is too short.
func (m *Megakernel) Reserve(phases, steps, args, data int) (bool, error) {
	if m.list != nil && !m.Commands.Fits(m.Phase+phases, steps, args, data) {
		if err := m.Flush(); err != nil {
			return false, err
		}
	}
	if m.list == nil {
		if err := m.begin(); err != nil {
			return false, err
		}
	}
	return m.Commands.Fits(m.Phase+phases, steps, args, data), nil
}

func (m *Megakernel) begin() error {
	if n := len(m.freeLists); n > 0 {
		m.list, m.freeLists = m.freeLists[n-1], m.freeLists[:n-1]
	} else {
		b, err := m.ex.AllocBuffer(executor.MediumBytes)
		if err != nil {
			return err
		}
		l := &commandList{buffer: b}
		l.release = func() { m.freeLists = append(m.freeLists, l) }
		m.list = l
	}
	m.Commands.Reset(m.deviceList.Address(), m.list.buffer.Bytes[:m.MaxBytes])
	m.Phase, m.next = 0, 0
	return nil
}

func (m *Megakernel) Append(c kernels.Call) error {
	fits, err := m.Reserve(1, 1, len(c.Args), 0)
	if err != nil {
		return err
	}
	if !fits {
		return fmt.Errorf("cuda: %s does not fit a command list of %d bytes", c.Kernel.Name, m.MaxBytes)
	}
	m.Commands.Add(m.Phase, c)
	m.EndAt(m.Phase + 1)
	return nil
}

// EndAt has the next level begin no earlier than at a phase. Calls of the current level may lie in
// later phases if no operation can depend on them.
func (m *Megakernel) EndAt(phase int) { m.next = max(m.next, phase) }

func (m *Megakernel) NextLevel() {
	if m.list != nil {
		m.Phase = max(m.Phase, m.next)
	}
}

func (m *Megakernel) Pending() bool { return m.list != nil }

// MayHang implements executor.Collector: the thread blocks of a launch wait for each other.
func (m *Megakernel) MayHang() bool { return m.Launches > 0 }

func (m *Megakernel) Flush() error {
	if m.list == nil {
		return nil
	}
	defer m.end()
	if m.ex.Err() != nil || m.Commands.Len() == 0 {
		return nil
	}
	err := m.launch()
	if isRefusal(err) {
		m.refused = true
		return m.launchEach()
	}
	return err
}

func (m *Megakernel) launch() error {
	if m.refused {
		return m.launchEach()
	}
	if m.Commands.Len() == 1 && !m.Commands.HasData() {
		return m.ex.Launch(slices.Concat(m.Commands.Calls()...)...)
	}
	times := m.timesOf()
	c := m.Commands.Call(m.list.buffer.Address(), m.counter.Address(), times, m.blocks)
	if times != 0 {
		return m.launchMeasured(c)
	}
	return m.ex.Launch(c)
}

// launchEach launches each call of the list, which may refer to data in the list's copy on the
// device.
func (m *Megakernel) launchEach() error {
	b := m.Commands.Bytes()
	if err := m.ex.CopyToDevice(m.deviceList.At, unsafe.Pointer(&b[0]), len(b)); err != nil {
		return err
	}
	return m.ex.Launch(slices.Concat(m.Commands.Calls()...)...)
}

// end ends the list, whose memory is free when the GPU has read it.
func (m *Megakernel) end() {
	m.ex.AfterSent(m.list.release)
	m.list = nil
	m.Launches++
}
