package ptxas

import (
	"maps"
	"testing"
)

// The compiler reports a kernel first and then each function that it calls. The spills of all of
// them count.
func TestUsageOfCalledFunctions(t *testing.T) {
	log := `ptxas info    : 308 bytes gmem
ptxas info    : Compiling entry function 'megakernel' for 'sm_90'
ptxas info    : Function properties for megakernel
ptxas         .     32 bytes stack frame, 52 bytes spill stores, 56 bytes spill loads
ptxas info    : Used 255 registers, used 16 barriers, 32 bytes cumulative stack size, 1024 bytes smem
ptxas info    : Function properties for _Z4callf
ptxas         .     8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads
ptxas info    : Compiling entry function 'plain' for 'sm_90'
ptxas info    : Function properties for plain
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 16 registers, used 0 barriers
`
	want := map[string]Usage{"megakernel": {Registers: 255, Stack: 32, Spilled: 56, Shared: 1024},
		"plain": {Registers: 16}}
	if got := UsageOf(log); !maps.Equal(got, want) {
		t.Errorf("the usage is %+v, want %+v", got, want)
	}
}
