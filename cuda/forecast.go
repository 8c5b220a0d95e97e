package cuda

import "fspda/cuda/executor"

// What the driver and its libraries take beside the blocks that they are asked for: estimates,
// until a GPU has been seen to do otherwise.
const (
	graphBytes   = 1 << 20   // of a recorded gradient of some hundred kernels
	libraryBytes = 128 << 20 // kernels of cuBLAS and cuDNN, which they load when they are first wanted
)

// Block is the bytes that n numbers of float32 take.
func (d *Device) Block(n int) uint64 {
	if n == 0 {
		return 0
	}
	return uint64(executor.SizeClass(4 * n))
}

// ProgramBytes forecasts the bytes that so many programs take that run one after the other: what they
// compute in, of which the largest needs most bytes, and the room for a batch of so many numbers
// that each has.
func (d *Device) ProgramBytes(most uint64, programs, batch int) uint64 {
	return uint64(executor.SizeClass(int(most)+1)) + uint64(programs)*uint64(executor.SizeClass(4*batch+1)+4*executor.SizeClass(1))
}

// Overhead estimates what is taken beside the blocks: graphs for so many sets of vectors, and the
// libraries' kernels.
func (d *Device) Overhead(sets int) uint64 {
	return libraryBytes + graphBytes*uint64(min(sets, executor.MaxGraphs))
}

// Staging is the pinned memory through which so many batches of so many numbers come to the GPU,
// and the vectors that are read on their way.
func (d *Device) Staging(batches, numbers int) uint64 {
	return uint64(batches+1) * uint64((4*numbers+executor.ChunkBytes-1)/executor.ChunkBytes) * executor.ChunkBytes
}

// Opened is the bytes that opening the device took beside its context: streams, kernels, handles of
// libraries and the memory that they work in.
func (d *Device) Opened() uint64 {
	return uint64(max(d.freeWithContext, d.freeWhenOpen) - d.freeWhenOpen)
}

// Taken tells how many bytes less are free, by the driver's count, than when the device had just
// been opened: what vectors, programs, graphs and libraries have taken since, and other programs on
// the same GPU.
func (d *Device) Taken() (bytes uint64, err error) {
	ex := d.exec
	err = ex.Do(func() error {
		var free, total uintptr
		if err := ex.API.Check(ex.API.MemGetInfo(&free, &total), "cuMemGetInfo", "asking for the free memory of %s",
			d.name); err != nil {
			return err
		}
		if free < d.freeWhenOpen {
			bytes = uint64(d.freeWhenOpen - free)
		}
		return nil
	})
	return bytes, err
}
