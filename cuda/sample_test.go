package cuda

import (
	"fmt"
	"testing"

	"fspda/device"
	"fspda/dist"
	"fspda/internal/testing/fakegpu"
)

// coordinatesOf returns the coordinates of an index: it gathers them from the vector 0, 1, 2, …
func coordinatesOf(d *Device, x device.Index, dim int) []float32 {
	host := make([]float32, dim)
	for i := range host {
		host[i] = float32(i)
	}
	all, some := d.NewVector(dim), d.NewVector(x.Len())
	d.Write(all, host)
	d.Do(device.Gather(some, all, x))
	host = host[:x.Len()]
	d.Read(host, some)
	return host
}

// The GPU draws the coordinates that the host draws, in new memory and in memory of earlier
// indexes.
func TestSampleIndexes(t *testing.T) {
	d, _ := openFake(t, fakegpu.Options{}, false)
	for _, c := range []struct {
		spec    string
		density float64
		dim     int
		masks   int
	}{{"randk", 0.1, 2000, 18}, {"randk", 0.002, 270_000, 2}, {"randk", 0.001, 300_000, 3}, {"stratified", 0.1, 1999,
		5}, {"stratified", 0.25, 1000, 2}} {
		mask, err := dist.ParseMask(c.spec, c.density, []int{c.dim}, 5)
		if err != nil {
			t.Fatal(err)
		}
		sampling, _ := mask.Sampling()
		indexes, counters := make([]device.Index, c.masks), make([]uint64, c.masks)
		for round := range 2 {
			for i := range counters {
				counters[i] = mask.Counter(round, i, i+1)
			}
			d.SampleIndexes(indexes, sampling, counters)
			for i, x := range indexes {
				want := mask.Draw(nil, round, i, i+1)
				if got := coordinatesOf(d, x, c.dim); fmt.Sprint(got) != fmt.Sprint(asFloats(want)) {
					t.Errorf("%s at %v of %d: mask %d of round %d is not that of the host", c.spec, c.density, c.dim, i,
						round)
				}
			}
		}
	}
	if err := d.Err(); err != nil {
		t.Fatal(err)
	}
}

func asFloats(coordinates []uint32) []float32 {
	all := make([]float32, len(coordinates))
	for i, c := range coordinates {
		all[i] = float32(c)
	}
	return all
}
