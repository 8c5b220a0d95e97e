package algo

import (
	"testing"

	"fspda/internal/rng"
)

// On a complete graph agents may share their sums. The trajectory of each algorithm is then the
// same as without sharing, regardless of which agent fills a shared vector, also if some exchanges
// fail.
func TestSharedSums(t *testing.T) {
	shared := 0 // vectors
	forTable(t, all, func(t *testing.T, e entry) {
		if _, swarm := e.algo.(Swarm); swarm || e.algo.Name() == "fspda-storm" {
			return // masks, or one exchange at a time
		}
		for seed := range uint64(3) {
			w := randomWorld(seed, 0)
			w.graph = w.complete()
			for _, fail := range []bool{false, !e.whole} {
				s := rng.New(seed, "quadratics")
				q := randomQuadratics(&s, w.n, w.d)
				var games [2]*game
				for k := range games {
					g := e.play(w, q, 0.05, 0.02)
					if !e.static && e.dress == nil {
						g.edges = func(int) [][2]int { return w.graph }
					}
					if fail {
						g.lost = func(t, i, j int) bool { return (t+i+j)%5 == 0 }
					}
					if e.algo.Traits().Edges.Reduces {
						g.lost = nil
					}
					g.share = k == 1
					for it := range 40 {
						g.step(t, it)
					}
					if g.differ {
						t.Errorf("world %d: what agents share depends on who fills it", seed)
					}
					shared += len(g.commons)
					games[k] = g
				}
				for i := range w.n {
					if d := distance(games[0].x(i), games[1].x(i)); !(d < 1e-11) {
						t.Errorf("world %d, failing %t: agent %d ends %g away", seed, fail, i, d)
					}
				}
			}
		}
	})
	if shared == 0 {
		t.Error("nothing was shared")
	}
}
