//go:build !(linux && (amd64 || arm64)) || nocuda || static

package dynlib

import "errors"

// Supported says that this build can open libraries.
const Supported = false

// system opens nothing on this system, or in this build.
type system struct{}

func (system) open(string, bool) (uintptr, error) { return 0, errUnsupported }

func (system) symbol(uintptr, string) (uintptr, error) { return 0, errUnsupported }

func (system) close(uintptr) error { return errUnsupported }

var errUnsupported = errors.New(
	"this build opens no libraries (that takes linux on amd64 or arm64, without the tags nocuda and static)")

func register(any, uintptr) { panic("dynlib: " + errUnsupported.Error()) }

// Call panics: there is nothing that could be called.
func Call(uintptr, ...uintptr) uintptr { panic("dynlib: " + errUnsupported.Error()) }
