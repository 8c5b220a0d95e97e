package cuda

import (
	"fspda/cuda/executor"
	"fspda/cuda/orthogonal"
)

// Block returns the bytes of a vector of n numbers.
func (d *Device) Block(n int) uint64 {
	if n == 0 {
		return 0
	}
	return uint64(executor.SizeClass(4 * n))
}

// ProgramBytes forecasts the bytes of programs that run one after the other: their shared arena, of
// which the largest program needs `most` bytes, and the batches of each, of `batch` numbers.
func (d *Device) ProgramBytes(most uint64, programs, batch int) uint64 {
	each := executor.SizeClass(4*batch+1) + 4*executor.SizeClass(1)
	return uint64(executor.SizeClass(int(most)+1)) + uint64(programs)*uint64(each)
}

// ProductBytes forecasts the working memory of Orthogonalize operations on vectors of n numbers, of
// which the largest matrix takes `largest` bytes. The matrices of a batch take no more than two of
// their size and two squares each.
func (d *Device) ProductBytes(largest uint64, n, vectors int) uint64 {
	return uint64(executor.SizeClass(int(min(uint64(4*4*n*vectors), max(largest, orthogonal.BatchBytes)))))
}

// Staging returns the bytes of pinned memory through which batches are copied to the GPU, vectors
// are written, and some are read at the same time. batch and vector are the numbers of one.
func (d *Device) Staging(batches, batch, vector int) uint64 {
	chunks := (batches + 1) * ((4*batch + executor.ChunkBytes - 1) / executor.ChunkBytes)
	if isLargeUpload(4 * vector) {
		chunks += maxUploads
	}
	return uint64(chunks) * executor.ChunkBytes
}

// Opened returns the bytes that opening the device took after its context: streams, kernels,
// handles of libraries and their workspaces.
func (d *Device) Opened() uint64 {
	return uint64(max(d.freeWithContext, d.freeWhenOpen) - d.freeWhenOpen)
}

// Taken returns by how many bytes free memory has shrunk since the device was opened, by the
// driver's count: by vectors, programs, graphs and libraries, and by other processes on the same
// GPU.
func (d *Device) Taken() (bytes uint64, err error) {
	ex := d.exec
	err = ex.Do(func() error {
		free, _, err := ex.FreeMemory()
		if err == nil && free < d.freeWhenOpen {
			bytes = uint64(d.freeWhenOpen - free)
		}
		return err
	})
	return bytes, err
}
