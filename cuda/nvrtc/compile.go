package nvrtc

import (
	"fmt"
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
