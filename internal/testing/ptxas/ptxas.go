// Package ptxas reads the resources of kernels from the log of NVIDIA's assembler.
package ptxas

import (
	"regexp"
	"strconv"
	"strings"
)

// Usage is the resources that a kernel uses on a multiprocessor, as the compiler reports them.
type Usage struct {
	Registers int // registers of a thread
	Stack     int // bytes per thread, without the functions that the kernel calls
	Spilled   int // bytes spilled to memory for lack of registers, called functions included
	Shared    int // bytes per block, without dynamic shared memory
}

var (
	usageEntry     = regexp.MustCompile(`Compiling entry function '([^']+)'`)
	usageFunction  = regexp.MustCompile(`Function properties for (\S+)`)
	usageStack     = regexp.MustCompile(`(\d+) bytes stack frame, (\d+) bytes spill stores`)
	usageRegisters = regexp.MustCompile(`Used (\d+) registers`)
	usageShared    = regexp.MustCompile(`(\d+) bytes smem`)
)

// UsageOf returns the resources of each kernel from the log of a compilation with the option
// --ptxas-options=-v.
func UsageOf(log string) map[string]Usage {
	usage := map[string]Usage{}
	name, function := "", "" // the current kernel; it, or a function that it calls
	for line := range strings.Lines(log) {
		if m := usageEntry.FindStringSubmatch(line); m != nil {
			name = m[1]
		}
		if m := usageFunction.FindStringSubmatch(line); m != nil {
			function = m[1]
		}
		if name == "" {
			continue
		}
		u := usage[name]
		if m := usageStack.FindStringSubmatch(line); m != nil {
			u.Spilled += number(m[2])
			if function == name {
				u.Stack = number(m[1])
			}
		}
		if m := usageRegisters.FindStringSubmatch(line); m != nil {
			u.Registers = number(m[1])
		}
		if m := usageShared.FindStringSubmatch(line); m != nil {
			u.Shared = number(m[1])
		}
		usage[name] = u
	}
	return usage
}

func number(digits string) int {
	n, _ := strconv.Atoi(digits) // the pattern matches digits only
	return n
}
