//go:build !amd64 || noasm || fspda_noasm

package norm

import "fspda/cpu/isa"

// sets holds the loops by instruction set.
var sets = [isa.Count]*loops{isa.Go: &plainLoops}
