package cuda

import (
	"os"
	"slices"
	"testing"

	"fspda/device"
	"fspda/device/devicetest"
	"fspda/internal/testing/fakegpu"
)

// The contract has very many small tasks, which are slow through the executor's goroutine: only
// long tests run all of it there.
func TestContract(t *testing.T) {
	if os.Getenv("FSPDA_LONG") == "" {
		d, _ := openFake(t, fakegpu.Options{}, true)
		devicetest.ShortContract(t, func() device.Device { return d })
		return
	}
	d, _ := openFake(t, fakegpu.Options{}, false)
	devicetest.Contract(t, func() device.Device { return d })
}

// Parts of the contract run through the executor's goroutine, where operations are queued.
func TestContractThroughExecutor(t *testing.T) {
	d, _ := openFake(t, fakegpu.Options{}, false)
	parts := []string{"labels", "batches", "batches of bytes", "concurrent programs", "calls in place", "buffers",
		"caller's bugs in Run"}
	for _, c := range devicetest.Checks() {
		if slices.Contains(parts, c.Name) {
			t.Run(c.Name, func(t *testing.T) { c.Run(t, d) })
		}
	}
}

// A GPU whose blocks have less shared memory than the megakernel needs works without it.
func TestLittleSharedMemory(t *testing.T) {
	d, m := openFake(t, fakegpu.Options{CC: 75}, false)
	x, got := d.NewVector(3), make([]float32, 3)
	d.Write(x, []float32{1, 2, 3})
	d.Do(device.Combine(x, device.Term{A: 2, V: x}))
	if d.Read(got, x); !slices.Equal(got, []float32{2, 4, 6}) || d.Err() != nil || m.Count("LaunchCooperative") > 0 {
		t.Errorf("%v, %v, %d cooperative launches", got, d.Err(), m.Count("LaunchCooperative"))
	}
}
