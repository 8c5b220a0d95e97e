//go:build race

package dist

// raceEnabled: under the race detector a sync.Pool forgets on purpose, so allocations cannot be
// counted.
const raceEnabled = true
