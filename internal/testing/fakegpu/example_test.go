package fakegpu_test

import (
	"fmt"
	"runtime"

	"fspda/cuda/driver"
	"fspda/internal/testing/fakegpu"
)

// A test allocates device memory through the driver's functions; the machine counts what is not
// freed.
func Example() {
	runtime.LockOSThread() // a context is current on one thread
	defer runtime.UnlockOSThread()
	m := fakegpu.New(fakegpu.Options{})
	api := m.API()
	if _, err := api.Start(); err != nil {
		fmt.Println(err)
		return
	}
	var c driver.Context
	var p driver.Pointer
	fmt.Println(api.PrimaryCtxRetain(&c, 0), api.CtxSetCurrent(c), api.MemAlloc(&p, 4096))
	fmt.Println(m.Used(), m.Leaks())
	// Output:
	// success success success
	// 4096 [1 allocations of device memory 1 contexts]
}
