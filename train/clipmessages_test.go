package train

import (
	"context"
	"math"
	"testing"

	"fspda/dist"
)

// wrongAgent is a Transport on which agent 2 sends 10.0 everywhere.
type wrongAgent struct{ *dist.Local }

func (w wrongAgent) Send(ctx context.Context, m dist.Message) error {
	if m.From == 2 {
		for i, b := range m.Values {
			wrong := dist.NewPool(b.Device()).Get(b.V.Len())
			v := make([]float32, b.V.Len())
			for k := range v {
				v[k] = 10
			}
			b.Device().Write(wrong.V, v)
			b.Release()
			m.Values[i] = wrong
		}
	}
	return w.Local.Send(ctx, m)
}

// With clip_messages an agent that sends 10.0 everywhere hardly moves the others, and a limit that
// nothing exceeds changes no bit.
func TestClipMessages(t *testing.T) {
	for name, edit := range map[string]func(*Config){
		"fspda-sa": func(c *Config) { c.Graph, c.Edges, c.Eta = "complete", "matching", AutoFloat{V: 1e-4} },
		"dsgd":     func(c *Config) { c.Algo, c.Graph, c.Edges = "dsgd", "complete", "full" },
	} {
		c := small()
		c.Agents, c.Iterations, c.EvalPoints = 4, 60, 1
		edit(&c)
		far := func(c Config, net dist.Transport) (most float64) {
			r := play(t, c, Options{Transport: net})
			for i, x := range r.Models {
				for _, v := range x {
					if i != 2 {
						most = max(most, math.Abs(float64(v)))
					}
				}
			}
			return most
		}
		honest, wrong := far(c, nil), far(c, wrongAgent{dist.NewLocal(c.Agents)})
		limited := c
		limited.ClipMessages = 0.2
		clipped := far(limited, wrongAgent{dist.NewLocal(c.Agents)})
		if wrong < 3 || clipped > honest+1 {
			t.Errorf("%s: the others are at most %.2f, with a wrong agent %.2f, and with messages clipped %.2f", name,
				honest, wrong, clipped)
		}
		loose := c
		loose.ClipMessages = 1e6
		if c.Algo == "dsgd" { // A sum over all agents, which a limit does without, is rounded otherwise.
			continue
		}
		if trace(t, play(t, loose, Options{})) != trace(t, play(t, c, Options{})) {
			t.Errorf("%s: a limit that nothing exceeds changes the run", name)
		}
	}
}
