//go:build !amd64 || noasm || fspda_noasm

package isa

// Cache returns nothing: only the processors of amd64 are asked.
func Cache() (vendor string, bytes int) { return "", 0 }
