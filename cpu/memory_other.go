//go:build !linux

package cpu

// adviseLarge does nothing: there is no such request to the system.
func adviseLarge([]float32) {}
