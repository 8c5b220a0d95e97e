//go:build (!amd64 && !arm64) || noasm || fspda_noasm

package tile

import "fspda/cpu/isa"

// sets, pairSets and dotSets are empty: this build has no micro-kernels.
var sets, pairSets, dotSets [isa.Count]*Set
