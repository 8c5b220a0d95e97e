package train

import (
	"context"
	"path/filepath"
	"testing"
)

// Agents that lend their vectors to evaluations and checkpoints, and share vectors for gradients,
// compute the bits of agents that copy them, also when they are stopped and resumed, and where they
// diverge.
func TestLending(t *testing.T) {
	for name, edit := range map[string]func(*Config){
		"fspda-sa":    func(c *Config) { c.Edges = "bernoulli(0.4)" },
		"dense":       func(c *Config) { c.Mask, c.Density = "all", 1 },
		"momentum":    func(c *Config) { c.Momentum = 0.5 },
		"fspda-async": func(c *Config) { c.Algo, c.Slowness = "fspda-async", "linear(3)" },
		"storm":       func(c *Config) { c.Algo = "fspda-storm" },
		"choco":       func(c *Config) { c.Algo, c.Compress = "choco", "topk" },
		"copies":      func(c *Config) { c.Algo, c.Compress, c.Edges = "fspda-sa-ef", "sign", "full" },
		"powergossip": func(c *Config) { c.Algo, c.Edges = "powergossip", "full" },
		"diverging":   func(c *Config) { c.Alpha, c.Activation, c.EvalPoints = 1e6, "relu", 30 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := small()
			c.Iterations, c.EvalPoints, c.Checkpoint = 60, 6, 0.002
			edit(&c)
			want := trace(t, play(t, c, Options{}))
			if got := trace(t, play(t, c, Options{lend: true})); got != want {
				t.Error("the rows or models differ")
			}
			if name == "diverging" {
				return
			}
			dir := filepath.Join(t.TempDir(), "run")
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			first, err := inFolder(t, ctx, c, dir, Options{lend: true, OnStep: func(it int) {
				if it == 30 {
					stop()
				}
			}})
			if err != nil {
				t.Fatal(err)
			}
			again, err := inFolder(t, t.Context(), c, dir, Options{lend: true})
			if err != nil || again.First != first.Iteration {
				t.Fatalf("stopped at %d, resumed at %d: %v", first.Iteration, again.First, err)
			}
			if trace(t, again) != want {
				t.Error("the rows or models differ after a resume")
			}
		})
	}
}
