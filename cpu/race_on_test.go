//go:build race

package cpu

// raceDetector is true where tests run under the race detector, which makes pools forget on
// purpose.
const raceDetector = true
