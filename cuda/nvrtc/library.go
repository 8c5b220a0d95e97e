package nvrtc

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"unsafe"

	"fspda/cuda/dynlib"
)

// Library is an open NVRTC. Several goroutines may use it.
type Library struct {
	Path         string
	Major, Minor int

	archs []int32 // 90 for sm_90
	calls map[string]uintptr
}

var symbols = []string{"nvrtcVersion", "nvrtcGetNumSupportedArchs", "nvrtcGetSupportedArchs", "nvrtcCreateProgram",
	"nvrtcCompileProgram", "nvrtcGetCUBINSize", "nvrtcGetCUBIN", "nvrtcGetPTXSize", "nvrtcGetPTX",
	"nvrtcGetProgramLogSize", "nvrtcGetProgramLog", "nvrtcDestroyProgram", "nvrtcGetErrorString"}

// Open prepares the library found by dynlib.NVRTC for use.
func Open(h *dynlib.Handle) (*Library, error) {
	l := &Library{Path: h.Path, calls: map[string]uintptr{}}
	for _, s := range symbols {
		var err error
		if l.calls[s], err = h.Symbol(s); err != nil {
			return nil, fmt.Errorf("nvrtc: %w: want NVRTC 11.2 or newer", err)
		}
	}
	var major, minor int32
	if err := l.call("nvrtcVersion", uintptr(unsafe.Pointer(&major)), uintptr(unsafe.Pointer(&minor))); err != nil {
		return nil, err
	}
	l.Major, l.Minor = int(major), int(minor)
	return l, l.listArchs()
}

func (l *Library) listArchs() error {
	var n int32
	if err := l.call("nvrtcGetNumSupportedArchs", uintptr(unsafe.Pointer(&n))); err != nil {
		return err
	}
	l.archs = make([]int32, max(n, 1))
	return l.call("nvrtcGetSupportedArchs", uintptr(unsafe.Pointer(&l.archs[0])))
}

// Supports reports whether the library compiles for an architecture, such as "sm_70".
func (l *Library) Supports(arch string) bool {
	return slices.ContainsFunc(l.archs, func(a int32) bool { return fmt.Sprintf("sm_%d", a) == arch })
}

// Compile compiles a source to a cubin, or to PTX for an architecture such as "compute_90". If the
// source does not compile, the error is a *CompileError with the log.
func (l *Library) Compile(s Source) (Binary, error) {
	program, err := l.create(s)
	if err != nil {
		return Binary{}, fmt.Errorf("nvrtc: creating a program for %s: %w", s.Name, err)
	}
	defer func() { _ = l.call("nvrtcDestroyProgram", uintptr(unsafe.Pointer(&program))) }()
	var c cStrings
	options := c.list(append([]string{"--gpu-architecture=" + s.Arch}, s.Options...))
	failure := l.call("nvrtcCompileProgram", program, uintptr(len(s.Options)+1), options)
	runtime.KeepAlive(c)
	log, err := l.bytes(program, "nvrtcGetProgramLogSize", "nvrtcGetProgramLog")
	if err != nil {
		return Binary{}, err
	}
	text := strings.TrimSuffix(string(log), "\x00")
	if failure != nil {
		return Binary{}, &CompileError{Name: s.Name, Arch: s.Arch, Status: failure.Error(), Log: text}
	}
	size, content := "nvrtcGetCUBINSize", "nvrtcGetCUBIN"
	if strings.HasPrefix(s.Arch, "compute_") {
		size, content = "nvrtcGetPTXSize", "nvrtcGetPTX"
	}
	cubin, err := l.bytes(program, size, content)
	if err == nil && len(cubin) == 0 {
		err = errors.New("it is empty")
	}
	if err != nil {
		return Binary{}, fmt.Errorf("nvrtc: reading the output for %s of %s: %w", s.Arch, s.Name, err)
	}
	return Binary{Cubin: cubin, Log: text}, nil
}

func (l *Library) create(s Source) (program uintptr, err error) {
	var c cStrings
	names := slices.Sorted(maps.Keys(s.Headers))
	texts := make([]string, len(names))
	for i, n := range names {
		texts[i] = s.Headers[n]
	}
	err = l.call("nvrtcCreateProgram", uintptr(unsafe.Pointer(&program)), c.one(s.Text), c.one(s.Name),
		uintptr(len(names)), c.list(texts), c.list(names))
	runtime.KeepAlive(c)
	return program, err
}

// bytes queries a size, then reads that many bytes.
func (l *Library) bytes(program uintptr, size, content string) ([]byte, error) {
	var n uintptr
	if err := l.call(size, program, uintptr(unsafe.Pointer(&n))); err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, nil
	}
	b := make([]byte, n)
	return b, l.call(content, program, uintptr(unsafe.Pointer(&b[0])))
}

// call calls a function that returns a status. The go:uintptrescapes directive keeps values alive,
// and on the heap, whose address is converted to uintptr in the argument list: a stack could move.
//
//go:uintptrescapes
func (l *Library) call(name string, args ...uintptr) error {
	if status := int32(dynlib.Call(l.calls[name], args...)); status != 0 {
		text := dynlib.String(dynlib.Call(l.calls["nvrtcGetErrorString"], uintptr(status)))
		return fmt.Errorf("%s: %s (%d)", name, text, status)
	}
	return nil
}

// cStrings builds NUL-terminated strings and arrays of them, and keeps their memory alive.
type cStrings struct {
	texts [][]byte
	lists [][]uintptr
}

func (c *cStrings) one(s string) uintptr {
	b := append([]byte(s), 0)
	c.texts = append(c.texts, b)
	return uintptr(unsafe.Pointer(&b[0]))
}

func (c *cStrings) list(all []string) uintptr {
	if len(all) == 0 {
		return 0
	}
	p := make([]uintptr, len(all))
	for i, s := range all {
		p[i] = c.one(s)
	}
	c.lists = append(c.lists, p)
	return uintptr(unsafe.Pointer(&p[0]))
}
