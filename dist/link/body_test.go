package link

import (
	"fmt"
	"slices"
	"testing"

	"fspda/cpu"
	"fspda/dist"
	"fspda/internal/rng"
)

// A message that any compressor made arrives with its values and with the coordinates that depend
// on the data, also if the compressor keeps all coordinates.
func TestCompressedBodies(t *testing.T) {
	for _, spec := range []string{"randk", "topk", "qsgd(15)", "qsgd-scaled(3)", "sign", "dct(4,3)", "dct(4,16)",
		"identity"} {
		for _, mask := range []string{"randk", "randk-per-layer", "all"} {
			for _, density := range []float64{0.3, 1} {
				for _, sizes := range [][]int{{1}, {1, 1}, {7, 3, 16}} {
					if mask == "all" && density < 1 {
						continue
					}
					t.Run(fmt.Sprint(spec, mask, density, sizes), func(t *testing.T) {
						m, err := dist.ParseMask(mask, density, sizes, 1)
						if err != nil {
							t.Fatal(err)
						}
						c, err := dist.ParseCompressor(spec, dist.CompressorOptions{Mask: m, Sizes: sizes, Seed: 1})
						if err != nil {
							t.Fatal(err)
						}
						checkCompressedBody(t, c, m.Dim())
					})
				}
			}
		}
	}
}

func checkCompressedBody(t *testing.T, c dist.Compressor, dim int) {
	pool := dist.NewPool(cpu.New())
	var writer dist.Codec = c
	if c.Picked() != nil { // A run sends such values as they are.
		writer = nil
	}
	codec := bodyCodec{pool: pool, codec: writer, dim: dim}
	s := rng.New(2, "body")
	var p dist.Payload
	for round := range 20 {
		v := make([]float32, dim)
		for i := range v {
			v[i] = float32(s.Norm())
		}
		if err := c.Compress(&p, v, round, 0, 0); err != nil {
			t.Fatal(err)
		}
		m := dist.Message{Codec: writer}
		for _, values := range p.Vectors {
			b := pool.Get(len(values))
			pool.Device().Write(b.V, values)
			m.Values = append(m.Values, b)
		}
		m.Values[0].Coords = append(m.Values[0].Coords, p.Coords...)
		body, err := codec.encode(m)
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := codec.decode(0, body, false, func() {})
		if err != nil || len(got) != len(p.Vectors) {
			t.Fatalf("%d vectors arrived of %d, %v", len(got), len(p.Vectors), err)
		}
		for i, b := range got {
			back := make([]float32, b.V.Len())
			if pool.Device().Read(back, b.V); !slices.Equal(back, p.Vectors[i]) {
				t.Errorf("vector %d arrived as %v, was %v", i, back, p.Vectors[i])
			}
		}
		if c.Sent(p).DataDependent && !slices.Equal(got[0].Coords, p.Coords) {
			t.Errorf("coordinates %v arrived as %v", p.Coords, got[0].Coords)
		}
	}
}
