//go:build !amd64 || noasm

package cpu

import "fspda/cpu/isa"

// loopsOf holds the loops by instruction set.
var loopsOf = [isa.Count]*normLoops{isa.Go: &normGo}
