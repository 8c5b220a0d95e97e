package data

import "testing"

// Every digit has at least two forms, within its box and with strokes of at least two points.
func TestGlyphsFillTheirBox(t *testing.T) {
	for digit, ways := range glyphs {
		if len(ways) < 2 {
			t.Errorf("digit %d has %d ways, want at least 2", digit, len(ways))
		}
		for way, g := range ways {
			top, bottom := 1.0, 0.0
			for _, k := range g.strokes {
				if len(k) < 2 {
					t.Errorf("digit %d way %d: a stroke of %d points", digit, way, len(k))
				}
				for _, q := range k {
					if q.x < 0 || q.x > 1 || q.y < 0 || q.y > 1 {
						t.Errorf("digit %d way %d: point %v outside the box", digit, way, q)
					}
					top, bottom = min(top, q.y), max(bottom, q.y)
				}
			}
			if top > 0.1 || bottom < 0.9 || g.width <= 0 || g.width > 1 {
				t.Errorf("digit %d way %d: height from %v to %v, width %v", digit, way, top, bottom, g.width)
			}
		}
	}
}
