package kernels_test

import (
	"testing"
	"unsafe"

	"fspda/cuda/kernels"
	"fspda/cuda/kernels/kerneltest"
)

// hostRunner runs kernels on the host.
type hostRunner struct{ host *host }

func (r hostRunner) Alloc(bytes int) (kernels.Address, error) {
	return at(r.host, make([]uint64, (bytes+7)/8)), nil // kept alive by host.memory
}

func (r hostRunner) Free(kernels.Address) {}

func (r hostRunner) Run(regions []kernels.Region, calls ...kernels.Call) error {
	each := func(move func(s kernels.Region, there []byte)) {
		for _, s := range regions {
			address := uintptr(s.At)
			move(s, unsafe.Slice(*(**byte)(unsafe.Pointer(&address)), len(s.Bytes)))
		}
	}
	each(func(s kernels.Region, there []byte) { copy(there, s.Bytes) })
	err := r.host.library.Launch(&r.host.memory, calls...)
	each(func(s kernels.Region, there []byte) { copy(s.Bytes, there) })
	return err
}

// The checks that the program runs on a GPU pass on the host.
func TestKernelChecks(t *testing.T) {
	h := onHost(t)
	for _, c := range kerneltest.Checks() {
		t.Run(c.Name, func(t *testing.T) { c.Run(t, hostRunner{h}) })
	}
}
