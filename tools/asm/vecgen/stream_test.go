package main

import (
	"slices"
	"testing"
)

// streams are the kernels with non-temporal stores, and how many loops each has.
var streams = map[string]int{"combineStream": maxTerms, "addStream": 1, "relusStream": 1, "reluGradsStream": 1,
	"sigmoidGradsStream": 1}

// Non-temporal stores are followed by a fence before the function returns, since others may read
// the result afterwards.
func TestStreamsAreFenced(t *testing.T) {
	for name, loops := range streams {
		for _, s := range x86 {
			lines := functions(t)[name+s.name]
			fences := 0
			for i, l := range lines {
				if l == "SFENCE" && slices.Equal(lines[i+1:min(i+3, len(lines))], []string{"VZEROUPPER", "RET"}) {
					fences++
				}
			}
			if fences != loops {
				t.Errorf("%s%s: %d fences, want %d", name, s.name, fences, loops)
			}
		}
	}
}

// An iteration writes one whole cache line by non-temporal stores: a line written in part would be
// fetched first.
func TestStreamsWriteWholeLines(t *testing.T) {
	for name, loops := range streams {
		for _, s := range x86 {
			lines := functions(t)[name+s.name]
			if n, want := count(lines, "", "", "VMOVNTPS"), loops*perLine/s.lanes; n != want {
				t.Errorf("%s%s: %d stores by non-temporal stores, want %d", name, s.name, n, want)
			}
		}
	}
}
