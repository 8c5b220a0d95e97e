//go:build !amd64 || noasm

package cpu

// vecCode says what the vector kernels are written in: there is only Go.
type vecCode int

const inGo vecCode = 0

func (vecCode) String() string { return "go" }

func vecCodes() []vecCode { return []vecCode{inGo} }

func inCode(_ vecCode, f func()) { f() }
