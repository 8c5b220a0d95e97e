package cuda

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"fspda/cuda/driver"
	"fspda/cuda/dynlib"
)

// ParseNames parses "cuda", which stands for all GPUs and gives nil, "cuda:N", or a list of
// different GPUs: "cuda:0,1".
func ParseNames(name string) (indices []int, err error) {
	kind, numbers, given := strings.Cut(name, ":")
	if kind == "cuda" && !given {
		return nil, nil
	}
	for n := range strings.SplitSeq(numbers, ",") {
		i, err := strconv.ParseUint(n, 10, 16)
		if kind != "cuda" || err != nil || slices.Contains(indices, int(i)) {
			return nil, fmt.Errorf("cuda: device %q: want cuda, cuda:N with N from 0 on, or several as in cuda:0,1",
				name)
		}
		indices = append(indices, int(i))
	}
	return indices, nil
}

// Count returns the number of GPUs that the driver finds, of those that CUDA_VISIBLE_DEVICES lists.
func Count() (int, error) {
	l, err := driver.Open(dynlib.System())
	if err != nil {
		return 0, err
	}
	n, err := l.ForThread().Count()
	if err == nil && n == 0 {
		err = driver.ErrNoDevice
	}
	return n, err
}

// OpenSeveral opens the GPUs with these numbers, or all where indices is nil, but no more than
// most.
func OpenSeveral(indices []int, most int, options ...Option) (all []*Device, err error) {
	if indices == nil {
		n, err := Count()
		if err != nil {
			return nil, err
		}
		for i := range n {
			indices = append(indices, i)
		}
	}
	for _, i := range indices[:min(len(indices), most)] {
		d, err := Open(i, options...)
		if err != nil {
			for _, d := range all {
				_ = d.Close() // the first error is returned
			}
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
}
