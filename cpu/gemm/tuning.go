package gemm

import "fspda/cpu/isa"

// tuning is what was measured on processors of a vendor and with a size of the first-level cache. It
// chooses where factors are read, so that no bit of a product depends on it.
type tuning struct {
	vendor string
	cache  int
	// rows of C from which op(B) is packed, if its rows are a multiple of crowdedFloats apart
	crowdedRows int
	// the most rows of C that are computed as columns because op(B) is transposed
	fewRows int
}

// tunings has the processors that were measured; the last stands for all others. A cache of 48 KB
// has 12 lines for addresses of one set, where others have 8.
var tunings = []tuning{
	{"AuthenticAMD", 48 << 10, 160, 64}, // Zen 5
	{crowdedRows: 64},
}

// tuned is the tuning of this processor.
var tuned = tuningOf(isa.Cache())

func tuningOf(vendor string, cache int) tuning {
	for _, t := range tunings {
		if t.vendor == vendor && t.cache == cache {
			return t
		}
	}
	return tunings[len(tunings)-1]
}
