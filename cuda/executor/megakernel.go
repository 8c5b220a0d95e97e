package executor

import (
	"errors"
	"fmt"
	"slices"
	"time"
	"unsafe"

	"fspda/cuda/driver"
	"fspda/cuda/kernels"
)

// Megakernel collects the small kernels of several levels and runs them in one cooperative launch:
// see kernels.CommandList. A kernel that it does not accept has a launch of its own, after the
// kernels that were collected of earlier levels. A nil megakernel accepts nothing. It belongs to
// the executor.
type Megakernel struct {
	ex         *Executor
	Commands   kernels.CommandList // the list that is collected
	list       *commandList        // its memory; nil: nothing is collected
	freeLists  []*commandList
	deviceList Block // the list's copy on the device
	counter    Block // counts the thread blocks that have arrived at a barrier
	blocks     int   // thread blocks of a launch
	MaxBytes   int   // the most bytes of a list
	MaxThreads int   // the most threads of a call, and the most numbers of a vector that is combined
	Phase      int   // the first phase of the current level
	next       int   // the first phase of the next level
	Launches   uint64
	refused    bool // the driver has refused a launch, so that each call has a launch of its own
}

// commandList is pinned memory for a list of kernel calls.
type commandList struct {
	buffer  *Buffer
	release func() // called when the GPU has read the list
}

// megakernelThreads is how many threads a call in a megakernel has at most. Larger calls fill a GPU
// alone, and hide the latency of memory better than the few threads of a megakernel.
const megakernelThreads = 1 << 18

// SeparateLaunchesVariable is an environment variable. If it is not empty, devices behave as with
// the option SeparateLaunches.
const SeparateLaunchesVariable = "FSPDA_CUDA_LAUNCHES"

// StartMegakernel makes the megakernel, with a block for each multiprocessor, if a probe shows that
// the driver runs it. Without one each kernel has a launch of its own.
func (ex *Executor) StartMegakernel(multiprocessors int) (err error) {
	m := &Megakernel{ex: ex, blocks: multiprocessors, MaxBytes: MediumBytes, MaxThreads: megakernelThreads}
	if m.deviceList, err = ex.Alloc(m.MaxBytes); err != nil {
		return err
	}
	if m.counter, err = ex.Alloc(4); err != nil {
		return err
	}
	if err := ex.SetBytes(m.counter.At, 0, 4); err != nil {
		return err
	}
	runs, err := m.probe()
	if runs {
		ex.Mega = m
	}
	return err
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
	if err := ex.syncWithin(probeTimeout); err != nil {
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

// accepts reports whether a call can run in the megakernel.
func (m *Megakernel) accepts(c kernels.Call) bool {
	if m == nil || c.Kernel == nil || !c.Listable() {
		return false
	}
	threads := uint64(c.Block[0]) * uint64(c.Grid[0]) * uint64(c.Grid[1]) * uint64(c.Grid[2])
	return threads <= uint64(m.MaxThreads)
}

// sortAcceptedLast puts the operations that the megakernel accepts after the others, which would
// split its list.
func (m *Megakernel) sortAcceptedLast(ops []*Op) {
	if m == nil {
		return
	}
	slices.SortStableFunc(ops, func(a, b *Op) int {
		switch x, y := m.accepts(a.Call), m.accepts(b.Call); {
		case x == y:
			return 0
		case x:
			return 1
		}
		return -1
	})
}

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

// begin begins a list.
func (m *Megakernel) begin() error {
	if n := len(m.freeLists); n > 0 {
		m.list, m.freeLists = m.freeLists[n-1], m.freeLists[:n-1]
	} else {
		b, err := m.ex.AllocBuffer(MediumBytes)
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

// Append adds a call to the list.
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

// nextLevel begins a level, whose calls run after the calls of the current one.
func (m *Megakernel) nextLevel() {
	if m != nil && m.list != nil {
		m.Phase = max(m.Phase, m.next)
	}
}

// collects reports whether something is collected and not launched yet.
func (m *Megakernel) collects() bool { return m != nil && m.list != nil }

// Flush launches the collected kernels.
func (m *Megakernel) Flush() error {
	if m == nil || m.list == nil {
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

// launch launches the list, or its only call.
func (m *Megakernel) launch() error {
	if m.refused {
		return m.launchEach()
	}
	if m.Commands.Len() == 1 && !m.Commands.HasData() {
		return m.ex.Launch(slices.Concat(m.Commands.Calls()...)...)
	}
	return m.ex.Launch(m.Commands.Call(m.list.buffer.Address(), m.counter.Address(), m.blocks))
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
	m.ex.ops.computed = append(m.ex.ops.computed, m.list.release)
	m.list = nil
	m.Launches++
}
