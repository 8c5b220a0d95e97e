package selftest

import (
	"context"
	"fmt"

	"fspda/device"
	"fspda/dist"
)

// masks returns the checks of masks drawn on the device: it must draw the same as the host, which
// may be the other end of an edge.
func (t Target) masks() (all []Check) {
	for _, c := range []struct {
		spec    string
		density float64
		dim     int
	}{{"randk", 0.1, 79_510}, {"randk", 0.01, 2_000_003}, {"randk", 0.7, 1001}, {"stratified", 0.1,
		2_000_003}, {"stratified", 0.25, 4000}} {
		dim, many := c.dim, 19 // more than fit in a launch
		if t.Small && dim > 4000 {
			dim, many = min(dim, 280_000), 2
		}
		all = append(all, Check{fmt.Sprintf("masks/%s at %v of %d", c.spec, c.density, dim),
			func(context.Context) (string, error) {
				if t.Device.Features().Sampler == nil {
					return "", SkipError("the device does not draw masks")
				}
				return checkMasks(t.Device, c.spec, c.density, dim, many)
			}})
	}
	return all
}

// checkMasks draws many masks of a vector of length dim at once, twice in the same memory, and
// compares them with the host's.
func checkMasks(dev device.Device, spec string, density float64, dim, masks int) (string, error) {
	mask, err := dist.ParseMask(spec, density, []int{dim}, 7)
	if err != nil {
		return "", err
	}
	sampling, _ := mask.Sampling()
	const rounds = 2
	numbers := make([]float32, dim) // 0, 1, 2, ..., so that gathering returns the coordinates
	for i := range numbers {
		numbers[i] = float32(i)
	}
	all, some := dev.NewVector(dim), dev.NewVector(mask.Len())
	dev.Write(all, numbers)
	got := make([]float32, mask.Len())
	indexes, counters := make([]device.Index, masks), make([]uint64, masks)
	for t := range rounds {
		for i := range counters {
			counters[i] = mask.Counter(t, i, i+1)
		}
		dev.Features().Sampler.SampleIndexes(indexes, sampling, counters)
		for i, x := range indexes {
			dev.Do(device.Gather(some, all, x))
			dev.Read(got, some)
			for j, c := range mask.Draw(nil, t, i, i+1) {
				if got[j] != float32(c) {
					return "", fmt.Errorf("coordinate %d of mask %d in round %d is %v, want %d", j, i, t, got[j], c)
				}
			}
		}
	}
	return fmt.Sprintf("%d masks of %d coordinates", rounds*masks, mask.Len()), nil
}
