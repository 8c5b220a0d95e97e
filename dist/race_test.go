//go:build race

package dist

// raceEnabled is true under the race detector, where a sync.Pool drops items on purpose, so that
// allocations cannot be counted.
const raceEnabled = true
