package dist

import (
	"slices"
	"testing"

	"fspda/internal/rng"
)

// The pieces of a vector, each compressed and sent by itself, are what the whole compressor makes,
// to the bit, also where a mask takes parts of the vector in turn.
func TestPiecesAreTheWhole(t *testing.T) {
	sizes := []int{700, 3, 64, 1000}
	mask, err := ParseMask("parts", 0.5, sizes, 7)
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range []string{"int(4,64)", "int(8,10)", "fp8(100)"} {
		for name, m := range map[string]Mask{"whole": nil, "in parts": mask} {
			c, err := ParseCompressor(spec, CompressorOptions{Sizes: sizes, Mask: m})
			if err != nil {
				t.Fatal(err)
			}
			const n = 5
			pieces := c.(Divisible).Divide(n)
			draw := rng.New(7, "values")
			for step := range 3 {
				v := make([]float32, c.Sent(Payload{T: step}).Values)
				for i := range v {
					v[i] = float32(draw.Float64() - 0.5)
				}
				var whole Payload
				if err := c.Compress(&whole, v, step, 0, 0); err != nil {
					t.Fatal(err)
				}
				var joined [2][]float32
				bits := 0
				for _, p := range pieces {
					from, to := p.Span(step, 0)
					var sent, got Payload
					if err := p.Compress(&sent, v[from:to], step, 0, 1); err != nil {
						t.Fatal(err)
					}
					body, err := p.Encode(nil, sent, SharedSeed, false)
					if err != nil {
						t.Fatal(err)
					}
					bits += 8 * len(body)
					got.T = step
					if err := p.Decode(&got, body, SharedSeed, false); err != nil {
						t.Fatal(err)
					}
					for k := range joined {
						joined[k] = append(joined[k], got.Vectors[k]...)
					}
				}
				for k := range joined {
					if !slices.Equal(joined[k], whole.Vectors[k]) {
						t.Errorf("%s, %s, iteration %d: vector %d differs", spec, name, step, k)
					}
				}
				s := c.Sent(Payload{T: step})
				if all := s.Values*s.ValueBits + s.ExtraBits; bits < all || bits >= all+8*n {
					t.Errorf("%s, %s: %d bits in pieces, %d in all", spec, name, bits, all)
				}
			}
			if c.(Divisible).Divide(10_000) != nil {
				t.Error("a vector was divided into more pieces than it has blocks")
			}
		}
	}
}
