package rng

// Base is what the streams of one seed and name have in common: New(seed, name, key...) goes on
// from it with the key. A GPU makes streams from it by itself.
func Base(seed uint64, name string) uint64 {
	h := mix(seed ^ 0x6673706461000000 ^ Version)
	for i := 0; i < len(name); i++ {
		h = mix(h ^ uint64(name[i]) + golden)
	}
	return h
}

// Counter is all there is of a stream: its next number is that of Counter()+golden. A GPU draws the
// same numbers from it.
func (s Stream) Counter() uint64 { return s.state }

// FromCounter is the stream that has come to a counter.
func FromCounter(counter uint64) Stream { return Stream{state: counter} }
