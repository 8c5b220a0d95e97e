package fakegpu

import (
	"errors"
	"unsafe"

	"fspda/cuda/driver"
)

// Arguments copies the n arguments of a launch as 8 bytes each. Kernels read shorter arguments from
// the front.
func Arguments(args []unsafe.Pointer, n int) []uint64 {
	all := make([]uint64, n)
	for i, p := range args[:n] {
		all[i] = *(*uint64)(p)
	}
	return all
}

// Params returns the number of arguments of a kernel. A Machine needs it to copy the arguments at
// launch time, as the driver does.
type Params func(kernel string) (n int, ok bool)

// Launch is a kernel launch that is due to run.
type Launch struct {
	Kernel      string
	Grid, Block [3]uint32
	Shared      uint32
	Cooperative bool // all blocks run at the same time
	Args        []uint64
}

// SetKernels sets the function that runs kernels.
func (m *Machine) SetKernels(params Params, run func(Launch) error) { m.params, m.run = params, run }

// launchCooperative rejects launches with more blocks than multiprocessors: one block fits on each.
func (m *Machine) launchCooperative(f driver.Function, grid, block [3]uint32, shared uint32, s driver.Stream,
	args []unsafe.Pointer) driver.Result {
	if m.options.NoCooperative {
		return driver.NotSupported
	}
	if grid[0]*grid[1]*grid[2] > multiprocessors {
		return driver.CooperativeLaunchTooLarge
	}
	return m.queueLaunch(Launch{Grid: grid, Block: block, Shared: shared, Cooperative: true}, f, s, args)
}

func (m *Machine) launch(f driver.Function, grid, block [3]uint32, shared uint32, s driver.Stream,
	args []unsafe.Pointer) driver.Result {
	return m.queueLaunch(Launch{Grid: grid, Block: block, Shared: shared}, f, s, args)
}

func (m *Machine) queueLaunch(l Launch, f driver.Function, s driver.Stream, args []unsafe.Pointer) driver.Result {
	grid, block := l.Grid, l.Block
	name := m.kernels[f]
	n, ok := 0, false
	if name != "" && m.params != nil {
		n, ok = m.params(name)
	}
	threads := block[0] * block[1] * block[2]
	if !ok || n > len(args) || grid[0] == 0 || grid[1] == 0 || grid[2] == 0 || threads == 0 || threads > 1024 ||
		grid[1] > 65535 || grid[2] > 65535 || l.Shared > max(driver.DefaultShared, m.shared[f]) {
		return driver.InvalidValue
	}
	l.Kernel, l.Args = name, Arguments(args, n)
	return m.enqueue(s, name, func() error {
		if m.run == nil {
			return errors.New("no kernel function is set: call Machine.SetKernels")
		}
		return m.run(l)
	})
}

// Enqueue queues work on a stream, as a library that launches its own kernels does. run must not
// call a function of the machine that waits.
func (m *Machine) Enqueue(s driver.Stream, name string, run func() error) driver.Result {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lost != driver.Success {
		return m.lost
	}
	return m.enqueue(s, name, run)
}
