package train

import (
	"testing"

	"fspda/cpu"
	"fspda/device"
	"fspda/model"
)

// pebble is a model of three parameters with the loss |x|²/2, whatever the examples.
type pebble struct{ dev device.Device }

func (pebble) Dim() int { return 3 }
func (pebble) Describe() model.Description {
	return model.Description{Tensors: model.Vectors(3)}
}
func (pebble) Init(uint64) []float32 { return []float32{2, 2, 2} }

func (pebble) InitBuffers() []float32 { return nil }
func (pebble) Async() bool            { return false }
func (pebble) Observe(_, _ device.Vector, _ device.Batch, _ float64) error {
	return nil
}

func (p pebble) StartGrad(dst, x, _ device.Vector, b device.Batch) func() (float64, error) {
	return ended(p.Grad(dst, x, b))
}

func (p pebble) Grad(dst, x device.Vector, _ device.Batch) (float64, error) {
	p.dev.Do(device.Gather(dst, x, nil))
	return device.InnerProduct(p.dev, x, x) / 2, nil
}

func (p pebble) Score(x device.Vector, b device.Batch) (loss, hits, hits5 float64, err error) {
	return float64(b.N()) * device.InnerProduct(p.dev, x, x) / 2, 0, 0, nil
}

func (p pebble) ScoreWith(x, _ device.Vector, b device.Batch) (loss, hits, hits5 float64, err error) {
	return p.Score(x, b)
}

// Bits of six iterations of four agents with three coordinates, by the formulas of the methods:
// with shared seeds, packed indices and indices of 64 bits.
func TestGoldenBits(t *testing.T) {
	ring := func(c *Config) { c.Graph, c.Edges, c.Density = "ring", "full", 1 }
	for _, l := range []struct {
		name string
		edit func(c *Config)
		want [3]uint64
	}{
		{"fspda-sa", func(c *Config) { c.Density = 2.0 / 3 }, [3]uint64{768, 792, 1536}},
		{"dsgd", ring, [3]uint64{4608, 4608, 4608}},
		{"dmsgd", ring, [3]uint64{9216, 9216, 9216}},
		{"qg-dsgdm", ring, [3]uint64{4608, 4608, 4608}},
		{"decentlam", ring, [3]uint64{4608, 4608, 4608}},
		{"d2", nil, [3]uint64{4608, 4608, 4608}},
		{"diging", ring, [3]uint64{9216, 9216, 9216}},
		{"next", ring, [3]uint64{9216, 9216, 9216}},
		{"local-sgd", func(c *Config) { c.LocalSteps = 2 }, [3]uint64{1728, 1728, 1728}},
		{"dsgd", func(c *Config) { ring(c); c.Edges, c.Order = "periodic(2)", "atc" }, [3]uint64{2304, 2304, 2304}},
		{"diloco", func(c *Config) { c.LocalSteps = 2 }, [3]uint64{1728, 1728, 1728}},
		{"des-loc", func(c *Config) {
			c.LocalSteps, c.Params = 2, Params{"moment_rounds": 2, "square_rounds": 3}
		}, [3]uint64{2880, 2880, 2880}},
		{"local-sgd", func(c *Config) {
			c.LocalSteps, c.Optimizer, c.Params = 2, "adamw", Params{"moment_rounds": 1, "square_rounds": 1}
		}, [3]uint64{5184, 5184, 5184}},
		{"sparseloco", func(c *Config) { c.LocalSteps, c.Params = 2, Params{"k": 2, "bins": "fp32"} },
			[3]uint64{36 * 2 * 34, 36 * 2 * 34, 36 * 2 * 96}},
		{"sparseloco", func(c *Config) { c.LocalSteps, c.Params = 2, Params{"k": 2} },
			[3]uint64{36 * (2*4 + 160), 36 * (2*4 + 160), 36 * (2*66 + 160)}},
		{"diloco", func(c *Config) { c.LocalSteps, c.Params = 2, Params{"quantize": "int4", "block": 2} },
			[3]uint64{18 * 76, 18 * 76, 18 * 76}},
		{"diloco", func(c *Config) {
			c.LocalSteps, c.Params = 2, Params{"quantize": "int8", "collective": "gather"}
		}, [3]uint64{36 * 56, 36 * 56, 36 * 56}},
		{"diloco", func(c *Config) { c.LocalSteps, c.Params = 2, Params{"quantize": "int2"} },
			[3]uint64{36 * 38, 36 * 38, 36 * 38}},
		{"noloco", func(c *Config) { c.LocalSteps, c.Graph = 2, "complete" }, [3]uint64{2304, 2304, 2304}},
		{"gasloc", func(c *Config) { c.LocalSteps, c.Graph = 2, "complete" }, [3]uint64{1152, 1152, 1152}},
		{"sparta", func(c *Config) { c.Density = 2.0 / 3 }, [3]uint64{2304, 2376, 4608}},
		{"sparta-diloco", func(c *Config) { c.Density, c.Params = 2.0/3, Params{"outer_steps": 3} },
			[3]uint64{4*384 + 2*576, 4*396 + 2*576, 4*768 + 2*576}},
		{"streaming-diloco", func(c *Config) { c.Density, c.LocalSteps = 1.0/3, 1 },
			[3]uint64{6 * 192, 6*192 + 6*3*2, 6 * 384}},
		{"demo", func(c *Config) { c.Compress = "dct(64,2)" }, [3]uint64{4896, 4896, 13824}},
	} {
		t.Run(l.name, func(t *testing.T) {
			c := small()
			c.Algo, c.Agents, c.Iterations, c.EvalPoints, c.Alpha, c.WeightDecay = l.name, 4, 6, 1, 0.1, 0
			if l.edit != nil {
				l.edit(&c)
			}
			m := pebble{cpu.New()}
			s, err := c.Resolve(labSet, m)
			if err != nil {
				t.Fatal(err)
			}
			r, err := Run(t.Context(), s, Options{Device: m.dev, Model: m})
			if err != nil {
				t.Fatal(err)
			}
			last := r.Rows[len(r.Rows)-1]
			if got := [3]uint64{last.BitsSharedSeed, last.BitsPacked, last.BitsReference}; got != l.want {
				t.Errorf("%s with edges %s: bits %d, want %d", l.name, s.Config.Edges, got, l.want)
			}
		})
	}
}
