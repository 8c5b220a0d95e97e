package kernel

// Parallel calls run for every part from 0 to parts-1, on the goroutines of the Program's team, in
// any order. The parts must not write to the same memory, and results must not depend on their
// number. run must not be a closure that captures variables: it would be allocated at each call.
func (o *Args) Parallel(parts int, run func(o *Args, part, of int)) {
	if o.Threads() > 1 && parts > 1 {
		o.Workers.Team.Run(run, o, parts)
		return
	}
	for part := range parts {
		run(o, part, parts)
	}
}

// Threads returns the number of goroutines that Parallel uses.
func (o *Args) Threads() int {
	if o.Workers == nil || o.Workers.Team == nil {
		return 1
	}
	return 1 + len(o.Workers.Team.workers)
}

// Workers refers to the team that a Program has during a run. All Args of the Program share one.
type Workers struct{ Team *Team }

// SplitUnits returns a part of n elements as a half-open range, in multiples of unit, when `of`
// parts share them as evenly as that allows.
func SplitUnits(part, of, n, unit int) (from, to int) {
	units := (n + unit - 1) / unit
	return min(n, units*part/of*unit), min(n, units*(part+1)/of*unit)
}

// ParallelRange calls run in parts for n numbers, if each part gets enough of them.
func (o *Args) ParallelRange(n int, run func(o *Args, part, of int)) {
	const least = 16 << 10 // some microseconds of the cheapest kernel
	o.Parallel(max(1, min(o.Threads(), n/least)), run)
}

// Split returns where part s begins and how long it is when n elements are divided into parts whose
// lengths differ by one at most. The longer parts come first.
func Split(s, all, n int) (first, length int) {
	low, more := n/all, n%all
	if s < more {
		return s * (low + 1), low + 1
	}
	return s*low + more, low
}
