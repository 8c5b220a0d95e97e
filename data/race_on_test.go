//go:build race

package data

// raceDetector reports whether tests run under the race detector, which makes arithmetic loops
// twenty times slower and finds nothing in them.
const raceDetector = true
