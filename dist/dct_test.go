package dist

import (
	"math"
	"slices"
	"testing"

	"fspda/internal/rng"
)

// A chunk is transformed as the definition of the orthonormal DCT-II says, and the inverse gives
// the vector back, whatever the shapes.
func TestTransform(t *testing.T) {
	shapes := [][2]int{{6, 10}, {9, 0}, {7, 130}, {1, 0}, {128, 0}}
	d := 0
	for _, s := range shapes {
		d += s[0] * max(1, s[1])
	}
	c := NewTransform[float64](shapes, 64)
	if n := len(c.chunks); n != 1+1+5+1+2 { // 130 columns are five times 26
		t.Errorf("%d chunks", n)
	}
	v, coefficients, back := make([]float64, d), make([]float64, d), make([]float64, d)
	s := rng.New(1, "transform")
	for i := range v {
		v[i] = s.Norm()
	}
	c.Forward(coefficients, v)
	basis := func(n, u, i int) float64 {
		scale := math.Sqrt(2 / float64(n))
		if u == 0 {
			scale = math.Sqrt(1 / float64(n))
		}
		return scale * math.Cos(math.Pi*(float64(i)+0.5)*float64(u)/float64(n))
	}
	for _, at := range [][2]int{{0, 0}, {3, 7}, {5, 9}} { // of the first matrix, which is one chunk
		want := 0.0
		for i := range 6 {
			for j := range 10 {
				want += basis(6, at[0], i) * basis(10, at[1], j) * v[i*10+j]
			}
		}
		if got := coefficients[at[0]*10+at[1]]; math.Abs(got-want) > 1e-12 {
			t.Errorf("coefficient %v is %v, want %v", at, got, want)
		}
	}
	c.Inverse(back, coefficients)
	length, same := 0.0, 0.0
	for i, x := range v {
		length, same = length+x*x, same+coefficients[i]*coefficients[i]
		if math.Abs(back[i]-x) > 1e-12 {
			t.Fatalf("number %d comes back as %v, was %v", i, back[i], x)
		}
	}
	if math.Abs(length-same) > 1e-9 {
		t.Errorf("squared length %v becomes %v", length, same)
	}
	var seen []bool
	for _, k := range c.chunks {
		if k.rows > 64 || k.cols > 64 {
			t.Errorf("chunk of %d × %d", k.rows, k.cols)
		}
		seen = append(seen, slices.Repeat([]bool{k.at == len(seen)}, k.len())...)
	}
	if len(seen) != d || slices.Contains(seen, false) {
		t.Errorf("%d coefficients of %d, or not one chunk after the other", len(seen), d)
	}
}

// Signs are those of the mean over the senders; the middle of an odd chunk, where the transform is
// exactly zero, has none.
func TestTransformSigns(t *testing.T) {
	c := NewTransform[float32]([][2]int{{3, 0}}, 64)
	got := make([]float32, 3)
	c.Signs(got, []float32{0, 2, 0}, []float32{0, 2, 0})
	if !slices.Equal(got, []float32{1, 0, -1}) {
		t.Errorf("signs %v", got)
	}
	c.Signs(got, []float32{1, -9, 0}, []float32{1, 3, 0}) // 1 and -3, not 1 and -9
	if want := []float32{-1, 1, 1}; !slices.Equal(got, want) {
		t.Errorf("signs %v, want %v", got, want)
	}
	c.Signs(got, make([]float32, 3), make([]float32, 3))
	if !slices.Equal(got, make([]float32, 3)) {
		t.Errorf("signs of nothing are %v", got)
	}
}

func TestDCTMistakes(t *testing.T) {
	m, err := ParseMask("all", 1, tensors, 7)
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range []string{"dct", "dct(8)", "dct(1,3)", "dct(65,3)", "dct(8,0)", "dct(a,b)"} {
		if _, err := ParseCompressor(spec, CompressorOptions{Mask: m, Sizes: tensors}); err == nil {
			t.Errorf("%s is admitted", spec)
		}
	}
	c := parseCompressor(t, "dct(8,3)", "randk", 0.1, false).(*DCT)
	var p Payload
	if err := c.Compress(&p, make([]float32, dim()), 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	b, err := c.Encode(nil, p, SharedSeed, true)
	if err != nil {
		t.Fatal(err)
	}
	b[0] = 0xff // the first two indices of a chunk become the same
	if c.Decode(&p, b, SharedSeed, true) == nil || c.Decode(&p, b[1:], SharedSeed, true) == nil {
		t.Error("a damaged message is admitted")
	}
}

// A chunk that is sent whole needs no index in any accounting: of chunks of 16 and 3 numbers, five
// and all are sent.
func TestDCTBits(t *testing.T) {
	c, err := ParseCompressor("dct(4,5)", CompressorOptions{Sizes: []int{16, 3}, Shapes: [][2]int{{4, 4}, {3, 0}}})
	if err != nil {
		t.Fatal(err)
	}
	var l Ledger
	l.Send(c.Sent(Payload{}))
	if l.Packed != 8*32+5*4 || l.SharedSeed != l.Packed || l.Reference != 8*32+5*64 {
		t.Errorf("%d bits packed, %d shared-seed, %d reference", l.Packed, l.SharedSeed, l.Reference)
	}
}
