//go:build !linux && !noasm && !fspda_noasm

package isa

// permitTiles returns false: the use of tiles is known for Linux only.
func permitTiles() bool { return false }
