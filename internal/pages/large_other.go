//go:build !linux

package pages

// Large does nothing: there is no such request to the system.
func Large[T any]([]T) {}

// Zeros does nothing, either.
func Zeros[T any]([]T) {}
