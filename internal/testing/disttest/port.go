package disttest

import (
	"testing"

	"fspda/internal/freeport"
)

// UnusedPort returns a port of this machine at which no program listens. No other test, nor fspda
// up, takes it until the test has ended.
func UnusedPort(tb testing.TB) int {
	tb.Helper()
	p, err := freeport.Reserve()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(p.Close)
	return p.Number
}
