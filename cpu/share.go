package cpu

// share says where part s of all begins and how long it is when n is divided: lengths differ by one
// at most.
func share(s, all, n int) (first, length int) {
	low, more := n/all, n%all
	if s < more {
		return s * (low + 1), low + 1
	}
	return s*low + more, low
}
