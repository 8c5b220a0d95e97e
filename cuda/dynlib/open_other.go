//go:build !(linux && (amd64 || arm64)) || nocuda || static

package dynlib

import "errors"

// Supported reports whether this build can open libraries.
const Supported = false

// system is the opener of a build that cannot open libraries.
type system struct{}

func (system) open(string, bool) (uintptr, error) { return 0, errUnsupported }

func (system) symbol(uintptr, string) (uintptr, error) { return 0, errUnsupported }

func (system) close(uintptr) error { return errUnsupported }

var errUnsupported = errors.New(
	"this build cannot open libraries (only builds for linux on amd64 or arm64 without the tags nocuda and static can)")

func register(any, uintptr) { panic("dynlib: " + errUnsupported.Error()) }

// Call panics: this build cannot open libraries.
func Call(uintptr, ...uintptr) uintptr { panic("dynlib: " + errUnsupported.Error()) }
