package cudnn

import "fspda/cuda/driver"

// Recorded returns a library that records its calls, for tests outside this package, and a function
// that returns the calls since it was last called. See library.
func Recorded() (*API, func() []string) {
	l := &library{}
	a := l.api()
	a.Create = func(out *Ptr) Status { *out = 7; return 0 }
	a.SetStream = func(Ptr, driver.Stream) Status { return 0 }
	forward := func() Status { l.calls = append(l.calls, "algorithm"); return 0 }
	a.Forward = func(_ Ptr, _ *float32, _ Tensor, _ driver.Pointer, _ Filter, _ driver.Pointer, _ Descriptor, _ int32,
		_ driver.Pointer, _ uintptr, _ *float32, _ Tensor, _ driver.Pointer) Status {
		return forward()
	}
	return a, func() []string { all := l.calls; l.calls = nil; return all }
}
