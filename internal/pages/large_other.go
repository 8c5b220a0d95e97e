//go:build !linux

package pages

// Large does nothing: this system has no such request.
func Large[T any]([]T) {}

// Zeros does nothing.
func Zeros[T any]([]T) {}
