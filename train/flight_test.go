package train

import (
	"context"
	"fmt"
	"math"
	"os"
	"testing"

	"fspda/dist"
	"fspda/internal/testing/disttest"
)

// late is a run of streaming DiLoCo whose outer steps are under way for several iterations.
func late() Config {
	c := small()
	c.Algo, c.LocalSteps, c.Density, c.Iterations, c.EvalPoints = "streaming-diloco", 4, 0.25, 24, 2
	c.Params = Params{"delay": 3}
	return c
}

// A run that is stopped in any iteration, while messages are on their way or not, goes on with the
// same bits: with plain and coded messages, in short formats, under simulated links, and where all
// coordinates travel. FSPDA_LONG=1 stops each form in every iteration, else in every fifth.
func TestResumesWhileMessagesTravel(t *testing.T) {
	for name, edit := range map[string]func(c *Config){
		"plain": func(*Config) {},
		"whole": func(c *Config) { c.Density = 1 },
		"bf16":  func(c *Config) { c.Wire = "bf16" },
		"adamw": func(c *Config) { c.Optimizer, c.Alpha = "adamw", 0.01 },
		"eager": func(c *Config) {
			c.Algo, c.Density, c.Params = "diloco", 1, Params{"outer": "eager", "outer_lr": 0.4, "outer_momentum": 0.3}
		},
		"delayed": func(c *Config) {
			c.Algo, c.Links, c.Params = "diloco", withLinks(t, wan), Params{"outer": "delayed", "outer_lr": 0.4}
		},
		"int4":   func(c *Config) { c.Params = Params{"delay": 2, "quantize": "int4", "feedback": 0.9} },
		"int2":   func(c *Config) { c.Params = Params{"delay": 3, "quantize": "int2"} },
		"links":  func(c *Config) { c.Links = withLinks(t, wan) },
		"gather": func(c *Config) { c.Links, c.Params = withLinks(t, wan), Params{"delay": 3, "quantize": "int2"} },
	} {
		t.Run(name, func(t *testing.T) {
			c := late()
			edit(&c)
			want := trace(t, play(t, c, Options{}))
			for at := 2; at < 12; at++ {
				if os.Getenv("FSPDA_LONG") == "" && (at+len(name))%5 > 0 {
					continue
				}
				part := runFolder(t)
				ctx, stop := context.WithCancel(context.Background())
				r, err := inFolder(t, ctx, c, part, stopping(at, stop))
				stop()
				if err != nil || r.Status != Stopped {
					t.Fatalf("stopped at %d: %v", at, err)
				}
				if r, err = inFolder(t, context.Background(), c, part, Options{}); err != nil || trace(t, r) != want {
					t.Errorf("stopped at %d, the run differs, error %v", at, err)
				}
			}
		})
	}
}

// Messages that arrive within the delay cost nothing: the run takes the time of its gradients.
// Those that take longer delay an iteration by the rest. Without a delay each exchange costs its
// time.
func TestDelayHidesExchanges(t *testing.T) {
	const gradient, latency, every = 0.1, 0.02, 4
	for _, c := range []struct {
		bandwidth float64 // Mbit/s
		delay     int
		quantize  string
	}{{0.5, 0, "none"}, {0.5, 3, "none"}, {0.5, 1, "none"}, {0.02, 3, "none"}, {0.02, 2, "int4"}, {0.5, 3, "int2"}} {
		l := late()
		l.Agents, l.Params = 4, Params{"delay": c.delay, "quantize": c.quantize}
		l.Links = withLinks(t, fmt.Sprintf("{gradient_ms: 100, default: {latency_ms: 20, bandwidth_mbit: %g}}",
			c.bandwidth))
		s, _ := resolve(t, l)
		now, ends := 0.0, math.Inf(1)
		for it := range l.Iterations {
			now += gradient
			if it-c.delay >= 0 && (it-c.delay+1)%every == 0 && c.delay > 0 {
				now = max(now, ends)
			}
			if (it+1)%every != 0 {
				continue
			}
			takes := exchangeTime(s, it, c.bandwidth*1e6, latency)
			if ends = now + takes; c.delay == 0 {
				now = ends
			}
		}
		got := play(t, l, Options{}).Rows[2].Time
		if !near(float64(got), now) {
			t.Errorf("%+v: %v s, want %v", c, got, now)
		}
		if all := gradient * float64(l.Iterations); c.delay == 3 && c.bandwidth > 0.1 && !near(float64(got), all) {
			t.Errorf("%+v: %v s, and gradients alone %v", c, got, all)
		}
	}
}

// exchangeTime is the time of the exchange of iteration t among four agents.
func exchangeTime(s *Setup, t int, rate, latency float64) float64 {
	n := len(s.Mask.Draw(nil, t, 0, 0))
	if codec := s.Codec(); codec != nil {
		m := codec.Sent(dist.Payload{T: t})
		bits := float64(m.Values*m.ValueBits + m.ExtraBits)
		if s.InRing() {
			return 6 * (math.Ceil(bits/4)/rate + latency)
		}
		return bits/rate + latency
	}
	return 6 * (32*math.Ceil(float64(n)/4)/rate + latency)
}

// The bits of messages that are under way at the end of a run are counted, and slow networks and
// other threads change nothing.
func TestLateMessagesRepeat(t *testing.T) {
	c := late()
	r := play(t, c, Options{})
	s, _ := resolve(t, c)
	if last := r.Rows[len(r.Rows)-1]; !near(float64(last.BitsSharedSeed), s.ExpectedBits()*float64(c.Iterations)) {
		t.Errorf("%d bits, the forecast is %v", last.BitsSharedSeed, s.ExpectedBits()*float64(c.Iterations))
	}
	c.Threads = 3
	if trace(t, play(t, c, Options{Transport: disttest.NewSim(c.Agents, 9, disttest.Faults{MaxDelay: 5,
		Reorder: true})})) != trace(t, r) {
		t.Error("with other threads and a slower network it is another run")
	}
}
