package nvrtc

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Source is the input of one compilation.
type Source struct {
	Name    string            // name of the file, for messages: "vector.cu"
	Text    string            // CUDA C++
	Headers map[string]string // headers that it may include, by name
	Arch    string            // "sm_90", or "compute_90" for PTX
	Options []string          // compiler options except the architecture
}

// Binary is a compiled Source.
type Binary struct {
	Cubin []byte // PTX for "compute_90"
	Log   string // the compiler's output
}

// CompileError reports a source that did not compile.
type CompileError struct {
	Name, Arch string
	Status     string // NVRTC's name of the error
	Log        string
}

func (e *CompileError) Error() string {
	return fmt.Sprintf("nvrtc: compiling %s for %s: %s; the compiler's output:\n%s", e.Name, e.Arch, e.Status,
		strings.TrimSpace(e.Log))
}

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

// Usage returns the resources of each kernel from the log of a compilation with the option
// --ptxas-options=-v.
func (b Binary) Usage() map[string]Usage {
	usage := map[string]Usage{}
	name, function := "", "" // the current kernel; it, or a function that it calls
	for line := range strings.Lines(b.Log) {
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
