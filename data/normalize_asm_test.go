//go:build (amd64 || arm64) && !noasm && !fspda_noasm

package data

import "testing"

// Every instruction set gives the bits of the table.
func TestNormalizeCodes(t *testing.T) {
	defer func(c normalizeCode) { normalizeIn = c }(normalizeIn)
	for _, normalizeIn = range normalizeCodes() {
		t.Run(normalizeIn.name, checkApply)
	}
}
