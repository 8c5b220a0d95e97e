package snapshot_test

import (
	"fmt"

	"fspda/cpu"
	"fspda/train/snapshot"
)

// A snapshot travels between processes as bytes.
func ExampleSnapshot_Encode() {
	dev := cpu.New()
	sent := &snapshot.Snapshot{Device: dev, X: dev.NewVector(2)}
	dev.Write(sent.X, []float32{1, 2})
	sent.Grads = 10
	b, err := sent.Encode()
	if err != nil {
		panic(err)
	}
	received := &snapshot.Snapshot{Device: dev, X: dev.NewVector(2)}
	if err := received.Decode(b); err != nil {
		panic(err)
	}
	x := make([]float32, 2)
	dev.Read(x, received.X)
	fmt.Println(x, received.Grads)
	// Output: [1 2] 10
}
