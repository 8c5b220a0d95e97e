//go:build !race

package kerneltest

// Race is true under the race detector, which makes pools drop values on purpose and slows loops in
// Go down.
const Race = false
