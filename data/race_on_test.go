//go:build race

package data

// raceDetector is true where tests run under the race detector, which makes loops of arithmetic
// twenty times slower and finds nothing in them.
const raceDetector = true
