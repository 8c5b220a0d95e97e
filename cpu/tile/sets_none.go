//go:build (!amd64 && !arm64) || noasm || fspda_noasm

package tile

import "fspda/cpu/isa"

// sets is empty: this build has no micro-kernels.
var sets [isa.Count]*Set
