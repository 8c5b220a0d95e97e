package dynlib

import (
	"fmt"
	"strings"
)

// Library describes a library to open.
type Library struct {
	Name      string   // messages name it so: "cuBLAS"
	Files     []string // file names, best first: "libcublas.so.13"
	WheelDirs []string // subfolders of site-packages that may contain it: "nvidia/cu13/lib"
	// LoadBefore and LoadAfter are patterns of sibling files to open before and after the library,
	// because it would not find them, or would find files of another installation.
	LoadBefore, LoadAfter []string
	LoadOptional          []string // more of LoadAfter; a file that does not open is left out
	PreferredPaths        []string // paths to try before the search folders
	FallbackPaths         []string // paths to try last
	Hint                  string   // how to install it
	// Precheck returns an error for a file that must not be opened. nil accepts all.
	Precheck func(path string) error
	// Accept returns an error for an open library that cannot be used, such as a wrong version. nil
	// accepts all.
	Accept func(*Handle) error
}

// Handle is an open library.
type Handle struct {
	Library *Library
	Path    string // a bare file name if the system's loader found it
	// why this folder was searched, for messages: "the environment (FSPDA_CUDA_PATH)"
	Origin string

	handle uintptr
	opener opener
}

func (h *Handle) Symbol(name string) (uintptr, error) {
	at, err := h.opener.symbol(h.handle, name)
	if err != nil || at == 0 {
		return 0, fmt.Errorf("%s (%s) has no function %s", h.Library.Name, h.Path, name)
	}
	return at, nil
}

// Attempt is a file that was tried and cannot be used.
type Attempt struct {
	Path string `json:"path"`
	Why  string `json:"why"` // reason
}

// Error reports that a library is missing, or that no copy of it can be used.
type Error struct {
	Library  string
	Attempts []Attempt // files that exist, and names that the loader was asked for
	Searched []string  // folders that were searched
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
