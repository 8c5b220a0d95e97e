package vec

// streamFrom is the length from which a vector is written past the caches: with what it is made of
// it is longer than they are. Only tests change it.
var nonTemporalFrom = 1 << 22

// passesCaches says whether to write d past the caches: where it is long, and none of what is read.
// An ordinary store reads each line before it writes it, a third or a fifth of all traffic.
func nonTemporal(d []float32, read ...[]float32) bool {
	if len(d) < nonTemporalFrom {
		return false
	}
	for _, v := range read {
		if &v[0] == &d[0] {
			return false
		}
	}
	return true
}
