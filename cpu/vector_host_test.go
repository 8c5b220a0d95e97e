package cpu

import (
	"testing"

	"fspda/device"
)

// A vector of the host shares memory with the slice that it wraps or returns.
func TestVectorsInPlace(t *testing.T) {
	d := New()
	numbers := []float32{1, 2, 3}
	v := d.Wrap(numbers)
	d.Do(device.Combine(v))
	if numbers[1] != 0 {
		t.Error("the wrapped numbers are not those of the vector")
	}
	d.Floats(v)[2] = 5
	back := make([]float32, 3)
	if d.Read(back, v); back[2] != 5 || v.Len() != 3 {
		t.Errorf("%v, want 5 at the end", back)
	}
}
