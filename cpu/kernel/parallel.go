package kernel

// parallel calls run for every part from 0 to parts-1, on as many goroutines as the Device has for
// this Program, in any order. The parts must not write to the same memory, and what they compute
// may depend on how many there are only where the result does not: bits never depend on the number
// of threads. run must not be a closure: that would be allocated at each call.
func (o *Args) Parallel(parts int, run func(o *Args, part, of int)) {
	if o.Threads() > 1 && parts > 1 {
		o.Workers.Team.Run(run, o, parts)
		return
	}
	for part := range parts {
		run(o, part, parts)
	}
}

// threads is how many goroutines parallel uses.
func (o *Args) Threads() int {
	if o.Workers == nil || o.Workers.Team == nil {
		return 1
	}
	return 1 + len(o.Workers.Team.workers)
}

// lent is the team that a Program has during a run; all of its operands look here.
type Workers struct{ Team *Team }

// portion is part of n things as a half-open range, in multiples of unit, when of parts share them
// as evenly as that allows.
func SplitUnits(part, of, n, unit int) (from, to int) {
	units := (n + unit - 1) / unit
	return min(n, units*part/of*unit), min(n, units*(part+1)/of*unit)
}

// eachRange calls run for ranges of n numbers, at least some thousands each, where that pays.
func (o *Args) ParallelRange(n int, run func(o *Args, part, of int)) {
	const least = 16 << 10 // some microseconds of the cheapest kernel
	o.Parallel(max(1, min(o.Threads(), n/least)), run)
}

// share says where part s of all begins and how long it is when n is divided: lengths differ by one
// at most.
func Split(s, all, n int) (first, length int) {
	low, more := n/all, n%all
	if s < more {
		return s * (low + 1), low + 1
	}
	return s*low + more, low
}
