package algo

import (
	"slices"
	"testing"

	"fspda/device"
	"fspda/internal/rng"
	"fspda/train/setting"
)

// without agrees with the coordinates one by one, on random ranges.
func TestWithout(t *testing.T) {
	s := rng.New(1, "ranges")
	draw := func() (in []bool, at []uint32) {
		in = make([]bool, 40)
		for k := range in {
			if in[k] = s.IntN(3) == 0; in[k] {
				at = append(at, uint32(k))
			}
		}
		return in, at
	}
	for range 300 {
		a, atA := draw()
		b, atB := draw()
		var got, want []uint32
		for _, r := range without(rangesOf(atA), rangesOf(atB)) {
			for k := r.From; k < r.To; k++ {
				got = append(got, uint32(k))
			}
		}
		for k := range a {
			if a[k] && !b[k] {
				want = append(want, uint32(k))
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%v without %v is %v", atA, atB, got)
		}
	}
	if outside(nil, 0) == nil {
		t.Error("no coordinates are nil, which stands for all")
	}
}

// A tensor of three matrices is three matrices, which three tensors would be too, and coordinates
// without weight decay have the direction without it.
func TestMuonDividesTensors(t *testing.T) {
	make := func(tensors ...Tensor) *Muon {
		return newMuon(Settings{Values: map[string]any{"mu": 0.9, "nesterov": true, "scale": matchAdamW, "beta1": 0.9,
			"beta2": 0.99, "eps": 1e-8, "alpha_rest": setting.AutoFloat{Auto: true}, "muon_tensors": "auto"},
			Tensors: tensors, Undecayed: []uint32{3, 4, 20, 21}})
	}
	joined := make(Tensor{Rows: 6, Cols: 3, Hidden: true, Blocks: 3}, Tensor{Offset: 18, Rows: 4})
	apart := make(Tensor{Rows: 2, Cols: 3, Hidden: true}, Tensor{Offset: 6, Rows: 2, Cols: 3, Hidden: true},
		Tensor{Offset: 12, Rows: 2, Cols: 3, Hidden: true}, Tensor{Offset: 18, Rows: 4})
	if !slices.Equal(joined.Matrices, apart.Matrices) || !slices.Equal(joined.Layers, apart.Layers) {
		t.Errorf("one tensor of three matrices is %+v, three tensors are %+v", joined, apart)
	}
	for what, c := range map[string]struct{ got, want []device.Range }{
		"layers":                 {joined.Layers, []device.Range{{From: 0, To: 18}}},
		"layers with decay":      {joined.DecayedLayers, []device.Range{{From: 0, To: 3}, {From: 5, To: 18}}},
		"the rest with decay":    {joined.DecayedRest, []device.Range{{From: 18, To: 20}}},
		"the rest without decay": {joined.FreeRest, []device.Range{{From: 20, To: 22}}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s: %v, want %v", what, c.got, c.want)
		}
	}
}
