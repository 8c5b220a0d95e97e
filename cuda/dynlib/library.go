package dynlib

import (
	"fmt"
	"strings"
)

// Library is what is looked for.
type Library struct {
	Name  string   // for people: "cuBLAS"
	Files []string // file names, the best first: "libcublas.so.13"
	Wheel []string // folders below a site-packages that may hold it: "nvidia/cu13/lib"
	First []string // patterns of files beside it that are opened before it, for it would not find them
	Then  []string // patterns of files beside it that are opened after it, before it looks for them elsewhere
	Extra []string // paths that are tried before the places that all libraries are looked for in
	Last  []string // paths that are tried when nobody else knows it
	Hint  string   // how to get it
	// Refuse tells of a file what speaks against it, before it is opened. nil refuses none.
	Refuse func(path string) error
	// Accept refuses a library that opens and is of no use, such as one of a wrong version. nil
	// accepts all.
	Accept func(*Handle) error
}

// Handle is a library that is open.
type Handle struct {
	Library *Library
	Path    string // a bare file name where the system's loader found it
	Place   string // what led there, for people: "the environment (FSPDA_CUDA_PATH)"

	handle uintptr
	opener opener
}

// Symbol is the address of a function.
func (h *Handle) Symbol(name string) (uintptr, error) {
	at, err := h.opener.symbol(h.handle, name)
	if err != nil || at == 0 {
		return 0, fmt.Errorf("%s (%s) has no function %s", h.Library.Name, h.Path, name)
	}
	return at, nil
}

// Attempt is a file that was tried.
type Attempt struct {
	Path string `json:"path"`
	Why  string `json:"why"` // it is not used
}

// Error says that a library is not there, or none that can be used.
type Error struct {
	Library  string
	Attempts []Attempt // files that were there, and names that the loader was asked for
	Places   []string  // folders that were searched
	Hint     string
}

func (e *Error) Error() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s is not found", e.Library)
	for i, a := range e.Attempts {
		fmt.Fprintf(&s, "%s %s: %s", []string{":", ";"}[min(i, 1)], a.Path, strings.TrimPrefix(a.Why, a.Path+": "))
	}
	if e.Hint != "" {
		fmt.Fprintf(&s, ": %s", e.Hint)
	}
	return s.String()
}
