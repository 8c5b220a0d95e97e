package train

import (
	"strings"
	"testing"
)

// What processes send is what the ledger counts, up to a tenth for headers, for every method, and
// they compute what one process computes.
func TestWireBytesAreCounted(t *testing.T) {
	for i, row := range methodRows(t) {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			c := configOf(t, row.name)
			c.Iterations, c.EvalPoints, c.Batch, c.Warmup, c.Hidden = 10, 1, min(c.Batch, 4), 0, Widths{40}
			s, _ := resolve(t, c)
			if s.Asynchronous() {
				t.Skip("its agents have no exchanges in common")
			}
			w := &processes{t: t, c: c, name: "wire-" + row.name}
			many := w.run(nil)
			last := many.Rows[len(many.Rows)-1]
			counted := last.BitsSharedSeed / 8
			if sent := last.WireBytes; float64(sent) > 1.1*float64(counted) {
				t.Errorf("%d bytes were sent, and %d are counted: %.2f times as many", sent, counted,
					float64(sent)/float64(counted))
			}
			if i%5 == 0 && withoutWireBytes(t, many) != withoutWireBytes(t, play(t, c, Options{})) {
				t.Error("over many machines it is another run")
			}
		})
	}
}

// An all-reduce of n processes sends 2(n-1) vectors, whatever the n, with and without a mask, and
// where its messages are late.
func TestAllReduceInParts(t *testing.T) {
	for name, edit := range map[string]func(*Config){
		"sgd":              func(c *Config) { c.Algo = "sgd" },
		"sgd of two":       func(c *Config) { c.Algo, c.Agents = "sgd", 2 },
		"sparta":           func(c *Config) { c.Algo, c.Optimizer, c.Alpha = "sparta", "adamw", 0.01 },
		"streaming-diloco": func(c *Config) { c.Algo, c.LocalSteps, c.Density = "streaming-diloco", 2, 0.25 },
		"diloco":           func(c *Config) { c.Algo, c.LocalSteps = "diloco", 2 },
		"diloco, int8":     quantized("diloco", "int8"),
		"muloco, int4":     quantized("muloco", "int4"),
		"streaming-diloco, late": func(c *Config) {
			c.Algo, c.LocalSteps, c.Density, c.Params = "streaming-diloco", 4, 0.25, Params{"delay": 3}
		},
		"streaming-diloco, one late": func(c *Config) {
			c.Algo, c.LocalSteps, c.Density, c.Params = "streaming-diloco", 2, 0.5, Params{"delay": 1}
		},
		"streaming-diloco, late int4": func(c *Config) {
			quantized("streaming-diloco", "int4")(c)
			c.LocalSteps, c.Density, c.Hidden, c.Params["delay"] = 4, 0.25, Widths{200}, 2
		},
		"diloco, delayed": func(c *Config) {
			c.Algo, c.LocalSteps, c.Params = "diloco", 2, Params{"outer": "delayed", "outer_lr": 0.4}
		},
		"diloco, eager": func(c *Config) {
			c.Algo, c.LocalSteps, c.Params = "diloco", 1, Params{"outer": "eager", "outer_lr": 0.4}
		},
		"diloco, fp8": quantized("diloco", "fp8"),
		"streaming-diloco, int5": func(c *Config) {
			quantized("streaming-diloco", "int5")(c)
			c.Density, c.Hidden = 0.25, Widths{200}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := small()
			c.Agents, c.Iterations, c.EvalPoints, c.Hidden = 7, 8, 1, Widths{50}
			edit(&c)
			one := play(t, c, Options{})
			run := "parts-" + strings.NewReplacer(" ", "-", ",", "").Replace(name)
			many := (&processes{t: t, c: c, name: run}).run(nil)
			last := many.Rows[len(many.Rows)-1]
			if counted := last.BitsSharedSeed / 8; float64(last.WireBytes) > 1.1*float64(counted) {
				t.Errorf("%d bytes were sent, and %d are counted", last.WireBytes, counted)
			}
			if withoutWireBytes(t, many) != withoutWireBytes(t, one) {
				t.Error("the rows or models differ")
			}
		})
	}
}

// quantized edits a configuration so that messages have numbers of few bits, in small blocks.
func quantized(method, numbers string) func(*Config) {
	return func(c *Config) {
		c.Algo, c.LocalSteps = method, 2
		c.Params = map[string]any{"quantize": numbers, "block": 64}
	}
}
