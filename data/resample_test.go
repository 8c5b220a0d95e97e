package data

import (
	"image"
	"slices"
	"testing"

	"fspda/internal/rng"
)

// noiseImage returns w×h pixels with low and high frequencies.
func noiseImage(w, h int, seed uint64) []uint8 {
	s := rng.New(seed, "noise picture")
	p := make([]uint8, 3*w*h)
	for i := range p {
		p[i] = uint8(s.IntN(256))
	}
	return p
}

// windows are boxes of all kinds: enlarged, slightly and strongly reduced, a single pixel,
// mirrored, a part of the output.
func windows() []window {
	return []window{{from: 0, size: 300, out: 224, first: 0, mirror: false}, {from: 5, size: 224, out: 224,
		first: 0, mirror: true}, {from: 100, size: 117, out: 224, first: 0, mirror: false}, {from: 299, size: 1,
		out: 224, first: 0, mirror: true}, {from: 2, size: 290, out: 256, first: 16, mirror: false}, {from: 10,
		size: 250, out: 256, first: 32, mirror: true}, {from: 0, size: 300, out: 32, first: 0, mirror: false},
		{from: 0, size: 300, out: 33, first: 1, mirror: true}, {from: 3, size: 2, out: 7, first: 0, mirror: false},
		{from: 0, size: 300, out: 3, first: 0, mirror: false}}
}

// The vector code gives the bits of the Go code, and writes nothing beyond the end.
func TestResampleImplementations(t *testing.T) {
	const w, h = 300, 300
	src := noiseImage(w, h, 1)
	for i := range src[:len(src)/3] {
		src[i] = 255 // nothing overflows
	}
	var fast resampler // shared between calls, as in a worker
	for i, across := range windows() {
		for _, down := range windows() {
			side := min(across.out-across.first, down.out-down.first, 224)
			got := make([]uint8, 3*side*side+64)
			for j := range got {
				got[j] = 0xee
			}
			resample(&fast, got[:3*side*side], src, 3*w, side, across, down)
			want := resampleGo(src, 3*w, side, across, down)
			if !slices.Equal(got[:len(want)], want) {
				t.Fatalf("window %d: %v × %v differs from the Go code", i, across, down)
			}
			for _, v := range got[len(want):] {
				if v != 0xee {
					t.Fatalf("%v × %v wrote beyond the end", across, down)
				}
			}
		}
	}
}

// resample scales a whole image.
func resample(r *resampler, dst, src []uint8, stride, side int, across, down window) {
	r.set(side, side, across, down)
	r.run(dst, src, stride, image.Point{})
}

// resampleGo is resample with the Go code.
func resampleGo(src []uint8, stride, side int, across, down window) []uint8 {
	var r resampler
	r.columns.set(side, across)
	r.rows.set(side, down)
	dst := make([]uint8, 3*side*side)
	line := make([]int16, 3*(r.columns.high-r.columns.low))
	for y := range side {
		sumRowsGo(line, src[int(r.rows.start[y])*stride+3*int(r.columns.low):], stride,
			r.rows.weight[y*r.rows.taps:][:r.rows.count[y]])
		sumColumnsGo(dst[3*side*y:], line, &r.columns)
	}
	return dst
}

// The results agree with the formula in real arithmetic, up to one level.
func TestResampleIsTheFormula(t *testing.T) {
	const w, h = 60, 50
	src := noiseImage(w, h, 2)
	for _, c := range []struct{ across, down window }{
		{window{from: 3, size: 40, out: 24, first: 0, mirror: false}, window{from: 1, size: 48, out: 24, first: 0,
			mirror: false}},
		{window{from: 10, size: 13, out: 24, first: 0, mirror: true}, window{from: 0, size: 50, out: 24, first: 0,
			mirror: false}},
		{window{from: 0, size: 60, out: 30, first: 3, mirror: false}, window{from: 0, size: 50, out: 40, first: 8,
			mirror: false}},
	} {
		var r resampler
		got := make([]uint8, 3*24*24)
		resample(&r, got, src, 3*w, 24, c.across, c.down)
		for y := range 24 {
			for x := range 24 {
				column := x
				if c.across.mirror {
					column = 23 - x
				}
				for k := range 3 {
					want := triangle(c.down, y, func(i int) float64 {
						return triangle(c.across, column, func(j int) float64 { return float64(src[3*(i*w+j)+k]) })
					})
					if v := float64(got[3*(y*24+x)+k]); v < want-0.6 || v > want+0.6 {
						t.Fatalf("%v: pixel %d, %d, %d is %v, want %.2f", c, y, x, k, v, want)
					}
				}
			}
		}
	}
}

// triangle is output pixel i of a window over the source at.
func triangle(w window, i int, at func(int) float64) float64 {
	scale := float64(w.size) / float64(w.out)
	sum, total := 0.0, 0.0
	for k := range w.size {
		d := (float64(k) + 0.5 - (float64(w.first+i)+0.5)*scale) / max(1, scale)
		if weight := 1 - max(d, -d); weight > 0 {
			sum += weight * at(w.from+k)
			total += weight
		}
	}
	return sum / total
}

// An image of one colour keeps it.
func TestResampleKeepsAColour(t *testing.T) {
	for _, level := range []uint8{0, 1, 127, 254, 255} {
		src := slices.Repeat([]uint8{level}, 3*300*300)
		for _, across := range windows() {
			side := min(across.out-across.first, 224)
			got := make([]uint8, 3*side*side)
			resample(new(resampler), got, src, 900, side, across, across)
			for i, v := range got {
				if v != level {
					t.Fatalf("%v: number %d is %d, want %d", across, i, v, level)
				}
			}
		}
	}
}

func BenchmarkResample(b *testing.B) {
	src := noiseImage(341, 256, 3)
	dst := make([]uint8, 3*224*224)
	for name, c := range map[string]struct{ across, down window }{
		"enlarge": {window{from: 50, size: 150, out: 224, first: 0, mirror: true}, window{from: 30, size: 150, out: 224,
			first: 0, mirror: false}},
		"same": {window{from: 50, size: 224, out: 224, first: 0, mirror: true}, window{from: 20, size: 224, out: 224,
			first: 0, mirror: false}},
		"shrink": {window{from: 1, size: 340, out: 224, first: 0, mirror: true}, window{from: 0, size: 256, out: 224,
			first: 0, mirror: false}},
	} {
		b.Run(name, func(b *testing.B) {
			var r resampler
			for b.Loop() {
				resample(&r, dst, src, 3*341, 224, c.across, c.down)
			}
		})
		b.Run(name+"/weights", func(b *testing.B) {
			var r resampler
			for b.Loop() {
				r.columns.set(224, c.across)
				r.rows.set(224, c.down)
				r.table.set(&r.columns)
			}
		})
	}
}
