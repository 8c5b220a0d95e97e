package tile

import (
	"testing"

	"fspda/cpu/isa"
)

// Every set has a micro-kernel for each height up to its highest.
func TestTileSets(t *testing.T) {
	for i, s := range sets {
		if s == nil {
			continue
		}
		for h, row := range s.Tiles {
			if row[0] == nil || row[1] == nil {
				t.Errorf("%s has no micro-kernel of height %d", isa.ISA(i), h+1)
			}
		}
	}
}
