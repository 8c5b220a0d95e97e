package fakegpu

import (
	"errors"
	"unsafe"

	"fspda/cuda/driver"
)

// Arguments copies the n arguments of a launch, 8 bytes of each: kernels read those at the front.
func Arguments(args []unsafe.Pointer, n int) []uint64 {
	all := make([]uint64, n)
	for i, p := range args[:n] {
		all[i] = *(*uint64)(p)
	}
	return all
}

// Params says how many arguments a kernel has. A Machine needs it to copy them at the time of the
// launch, as the driver does.
type Params func(kernel string) (n int, ok bool)

// Launch is a kernel as it is to be run. Together says that all its blocks run at the same time.
type Launch struct {
	Kernel      string
	Grid, Block [3]uint32
	Shared      uint32
	Together    bool
	Args        []uint64
}

// Kernels makes a Machine run kernels by a function that is given their arguments.
func (m *Machine) Kernels(params Params, run func(Launch) error) {
	m.params, m.run = params, run
}

// launchTogether refuses more blocks than the multiprocessors have at the same time, which is one
// each.
func (m *Machine) launchTogether(f driver.Function, grid, block [3]uint32, shared uint32, s driver.Stream,
	args []unsafe.Pointer) driver.Result {
	if m.options.NotTogether {
		return driver.NotSupported
	}
	if grid[0]*grid[1]*grid[2] > multiprocessors {
		return driver.TooManyTogether
	}
	return m.queueLaunch(Launch{Grid: grid, Block: block, Shared: shared, Together: true}, f, s, args)
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
		grid[1] > 65535 || grid[2] > 65535 {
		return driver.InvalidValue
	}
	l.Kernel, l.Args = name, Arguments(args, n)
	return m.enqueue(s, name, func() error {
		if m.run == nil {
			return errors.New("this machine runs no kernels")
		}
		return m.run(l)
	})
}

// Do queues work on a stream, as a library that launches kernels of its own does. Nothing that run
// calls may wait for the machine.
func (m *Machine) Do(s driver.Stream, name string, run func() error) driver.Result {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lost != driver.Success {
		return m.lost
	}
	return m.enqueue(s, name, run)
}
