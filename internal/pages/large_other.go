//go:build !linux

package pages

// Large does nothing: there is no such request to the system.
func Large[T any]([]T) {}
