package drivertest

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

// Params says how many arguments a kernel has. A Machine needs it to copy them at the time of the launch, as the driver does.
type Params func(kernel string) (n int, ok bool)

// Kernels makes a Machine run kernels by a function that is given their arguments.
func (m *Machine) Kernels(params Params, run func(kernel string, grid, block [3]uint32, shared uint32, args []uint64) error) {
	m.params, m.run = params, run
}

func (m *Machine) launch(f driver.Function, grid, block [3]uint32, shared uint32, s driver.Stream, args []unsafe.Pointer) driver.Result {
	name := m.kernels[f]
	n, ok := 0, false
	if name != "" && m.params != nil {
		n, ok = m.params(name)
	}
	threads := block[0] * block[1] * block[2]
	if !ok || n > len(args) || grid[0] == 0 || grid[1] == 0 || grid[2] == 0 || threads == 0 || threads > 1024 || grid[1] > 65535 || grid[2] > 65535 {
		return driver.InvalidValue
	}
	values := Arguments(args, n)
	return m.enqueue(s, name, func() error {
		if m.run == nil {
			return errors.New("this machine runs no kernels")
		}
		return m.run(name, grid, block, shared, values)
	})
}

// Do queues work on a stream, as a library that launches kernels of its own does. Nothing that run calls may wait for the machine.
func (m *Machine) Do(s driver.Stream, name string, run func() error) driver.Result {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lost != driver.Success {
		return m.lost
	}
	return m.enqueue(s, name, run)
}
