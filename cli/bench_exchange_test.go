//go:build !windows

package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"fspda/bench/measure"
	"fspda/cli/command"
)

// Every transport of an exchange is measured, and the table names them all.
func TestBenchExchange(t *testing.T) {
	t.Setenv("FSPDA_TEST_AS_PROGRAM", "1") // the other end is a process of its own
	status, stdout, stderr := call(t, "bench", "exchange", "--bytes", "64,1200000", "--time", "20ms", "--json")
	if status != 0 {
		t.Fatal(stderr)
	}
	var r measure.ExchangeReport
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Rows) != 18 {
		t.Fatalf("%d rows, expected ten ways for 64 bytes and eight for 1.2 MB:\n%s", len(r.Rows), stdout)
	}
	for _, row := range r.Rows {
		if row.Median <= 0 || row.Low > row.Median || row.High < row.Median || row.Count < 5 {
			t.Errorf("%+v", row)
		}
	}
	if table := r.String(); !strings.Contains(table, "bare gRPC stream") || !strings.Contains(table, "1200000") {
		t.Errorf("%s", table)
	}
	for _, bad := range [][]string{{"--bytes", "3"}, {"--time", "0s"}, {"--batch", "0"},
		{"--end", "x", "--bytes", "4"}} {
		if status, _, stderr := call(t, append([]string{"bench", "exchange"},
			bad...)...); status != command.ExitBadInput ||
			!strings.Contains(stderr, strings.TrimLeft(bad[0], "-")) {
			t.Errorf("%v: exit status %d, %s", bad, status, stderr)
		}
	}
}
