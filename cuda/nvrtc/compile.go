package nvrtc

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Source is what one cubin is made of.
type Source struct {
	Name    string            // of the unit, for messages: "vector.cu"
	Text    string            // CUDA C++
	Headers map[string]string // what it may include, by name
	Arch    string            // "sm_90"
	Options []string          // of the compiler, but the architecture
}

// Binary is a compiled Source.
type Binary struct {
	Cubin []byte
	Log   string // what the compiler said
}

// CompileError says that a source did not compile.
type CompileError struct {
	Name, Arch string
	Status     string // NVRTC's name of the failure
	Log        string
}

func (e *CompileError) Error() string {
	return fmt.Sprintf("nvrtc: compiling %s for %s: %s; the compiler says:\n%s", e.Name, e.Arch, e.Status,
		strings.TrimSpace(e.Log))
}

// Use is what a kernel takes of a multiprocessor, by the compiler's word.
type Use struct {
	Registers int // of a thread
	Stack     int // bytes of a thread
	Spilled   int // bytes stored to memory for want of registers
	Shared    int // bytes of a block, the dynamic ones not counted
}

var (
	useOf        = regexp.MustCompile(`Compiling entry function '([^']+)'`)
	useStack     = regexp.MustCompile(`(\d+) bytes stack frame, (\d+) bytes spill stores`)
	useRegisters = regexp.MustCompile(`Used (\d+) registers`)
	useShared    = regexp.MustCompile(`(\d+) bytes smem`)
)

// Uses reads the log of a compilation with the option --ptxas-options=-v: what each kernel uses.
func (b Binary) Uses() map[string]Use {
	uses := map[string]Use{}
	name := ""
	for line := range strings.Lines(b.Log) {
		if m := useOf.FindStringSubmatch(line); m != nil {
			name = m[1]
		}
		if name == "" {
			continue
		}
		u := uses[name]
		if m := useStack.FindStringSubmatch(line); m != nil {
			u.Stack, u.Spilled = number(m[1]), number(m[2])
		}
		if m := useRegisters.FindStringSubmatch(line); m != nil {
			u.Registers = number(m[1])
		}
		if m := useShared.FindStringSubmatch(line); m != nil {
			u.Shared = number(m[1])
		}
		uses[name] = u
	}
	return uses
}

func number(digits string) int {
	n, _ := strconv.Atoi(digits) // the expression lets only digits through
	return n
}
