package rng

// Base is the hash of a seed and a name: New(seed, name, key...) mixes the key into it. A GPU
// derives streams from it.
func Base(seed uint64, name string) uint64 {
	h := mix(seed ^ 0x6673706461000000 ^ Version)
	for i := 0; i < len(name); i++ {
		h = mix(h ^ uint64(name[i]) + golden)
	}
	return h
}

// Counter is the complete state of a stream: its next number is a function of Counter()+golden. A
// GPU draws the same numbers from it.
func (s Stream) Counter() uint64 { return s.state }

// FromCounter returns the stream with that state.
func FromCounter(counter uint64) Stream { return Stream{state: counter} }
