package executor_test

import (
	"errors"
	"fmt"

	"fspda/cuda/executor"
	"fspda/internal/testing/fakegpu"
)

// Two operations on the same memory run in the order in which they were queued.
func Example() {
	ex := executor.New(fakegpu.New(fakegpu.Options{}).API(), false)
	err := ex.Start(func() error {
		return errors.Join(ex.FindGPU(0), ex.EnterContext(0), ex.CreateStreams())
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	block, err := ex.TakeBlock(4)
	if err != nil {
		fmt.Println(err)
		return
	}
	var memory executor.Dependency
	for _, value := range []uint8{1, 2} {
		ex.Enqueue(func() error { return ex.SetBytes(block.At, value, 4) }, executor.Writes(&memory))
	}
	err = ex.DoInOrder(func() error {
		bytes, err := ex.ReadBack(block.At, 4)
		fmt.Println(bytes)
		return err
	})
	fmt.Println(err, ex.Stop(func() error { return ex.Shutdown() }))
	// Output:
	// [2 2 2 2]
	// <nil> <nil>
}
