package train

import (
	"slices"
	"sync"
	"testing"

	"fspda/cpu"
	"fspda/device"
	"fspda/dist"
)

// drawingDevice is a CPU that draws coordinates by itself: those of a mask, which it knows by the
// counter of its stream.
type drawingDevice struct {
	*cpu.Device
	mask dist.Mask

	mu    sync.Mutex
	known map[uint64][3]int
	drawn int
}

func (d *drawingDevice) Features() device.Features { return device.Features{Sampler: d} }

func (d *drawingDevice) SampleIndexes(dst []device.Index, law device.Sampling, counters []uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.drawn += len(dst)
	for i, c := range counters {
		k := d.known[c]
		dst[i] = d.NewIndex(d.mask.Draw(nil, k[0], k[1], k[2]), dst[i])
	}
}

// learn makes the masks of so many iterations known.
func (d *drawingDevice) learn(mask dist.Mask, agents, iterations int) {
	d.mask, d.known = mask, map[uint64][3]int{}
	for t := range iterations {
		for i := range agents {
			for j := i; j < agents; j++ {
				d.known[mask.Counter(t, i, j)] = [3]int{t, i, j}
			}
		}
	}
}

// Results do not depend on what draws the masks nor on how many are drawn at a time, and all masks
// are released.
func TestDrawnMasks(t *testing.T) {
	for _, change := range []func(c *Config){
		func(c *Config) {},
		func(c *Config) { c.Graph, c.Edges, c.Mask = "ring", "full", "stratified" },
		func(c *Config) { c.Algo, c.Edges = "choco", "broadcast(0.5)" },
	} {
		c := small()
		c.Density, c.Iterations = 0.2, 40
		change(&c)
		var models [2][][]float32
		for k := range models {
			dev := &drawingDevice{Device: cpu.New()}
			var on device.Device = dev.Device
			if k == 1 {
				on = dev
			}
			m := labModel(t, c).On(on)
			s, err := c.Resolve(labSet, m)
			if err != nil {
				t.Fatal(err)
			}
			dev.learn(s.Mask, c.Agents, c.Iterations+mostAhead)
			res, err := Run(t.Context(), s, Options{Device: on, Model: m})
			if err != nil {
				t.Fatal(err)
			}
			if models[k] = res.Models; (dev.drawn > 0) != (k == 1) {
				t.Errorf("%s on %s: the device drew %d masks", c.Algo, c.Graph, dev.drawn)
			}
		}
		if !slices.EqualFunc(models[0], models[1], slices.Equal) {
			t.Errorf("%s on %s: another run where the device draws", c.Algo, c.Graph)
		}
	}
}

// A mask is drawn once, is kept until its last user has let go of it, and then its memory is used
// again.
func TestMasksAreShared(t *testing.T) {
	law, err := dist.ParseMask("randk", 0.1, []int{500}, 3)
	if err != nil {
		t.Fatal(err)
	}
	m := newMasks(cpu.New(), law, nil)
	key := comingMask{maskKey{7, 1, 2}, 2}
	first := m.get(key)
	second := m.get(key)
	if first != second || first.index.Len() != 50 {
		t.Fatalf("two ends have two masks, or %d coordinates, want 50", first.index.Len())
	}
	m.release([]*mask{first})
	if len(m.drawn) != 1 || len(m.idle) != 0 {
		t.Errorf("with a user left %d masks are drawn and %d idle, want 1 and 0", len(m.drawn), len(m.idle))
	}
	m.release([]*mask{second})
	again := m.get(comingMask{maskKey{8, 1, 2}, 1})
	if again != first || len(m.drawn) != 1 || len(m.idle) != 0 {
		t.Errorf("memory is not used again: %d masks drawn, %d idle", len(m.drawn), len(m.idle))
	}
}
