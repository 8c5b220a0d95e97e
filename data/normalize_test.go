package data

import (
	"math"
	"testing"
)

// The vector code and the table give the same bits at every length and alignment, and write nothing
// outside dst.
func TestApplyImplementations(t *testing.T) { checkApply(t) }

func checkApply(t *testing.T) {
	t.Helper()
	n, err := newNormalizer([]float32{mnistMean}, []float32{mnistStd})
	if err != nil {
		t.Fatal(err)
	}
	source := make([]uint8, 40000)
	for i := range source {
		source[i] = uint8(i * 7)
	}
	three, err := newNormalizer([]float32{0.485, 0.456, 0.406}, []float32{0.229, 0.224, 0.225})
	if err != nil {
		t.Fatal(err)
	}
	for length := range 150 {
		for offset := range 17 {
			checkApplyOf(t, n, source[offset:offset+length], source[:length/2])
			checkApplyOf(t, three, source[offset:offset+length], nil)
		}
	}
	checkApplyOf(t, three, source[3:], nil)
	checkApplyOf(t, n, source[3:], nil) // more than a call takes
	checkApplyOf(t, n, source[3:], source[:100])
}

func checkApplyOf(t *testing.T, n *normalizer, in, ahead []uint8) {
	t.Helper()
	const guard = float32(-77)
	length := len(in)
	got, want := make([]float32, length+2), make([]float32, length)
	got[0], got[length+1] = guard, guard
	n.apply(got[1:length+1], in, ahead)
	n.applyGo(want, in)
	for i, w := range want {
		if math.Float32bits(got[i+1]) != math.Float32bits(w) {
			t.Fatalf("length %d: element %d is %v, table %v", length, i, got[i+1], w)
		}
	}
	if got[0] != guard || got[length+1] != guard {
		t.Fatalf("length %d: wrote outside", length)
	}
}

// The table is (p/255 - mean)/std to a few units of the last place at the largest value.
func TestTableIsTheFormula(t *testing.T) {
	n, err := newNormalizer([]float32{mnistMean}, []float32{mnistStd})
	if err != nil {
		t.Fatal(err)
	}
	for p, got := range n.channels[0].table {
		want := (float64(p)/255 - mnistMean) / mnistStd
		if math.Abs(float64(got)-want) > 1e-6 {
			t.Errorf("pixel %d is %v, want %v", p, got, want)
		}
	}
}

// Channels are interleaved, each with its own mean and std.
func TestChannelsTakeTurns(t *testing.T) {
	mean, std := []float32{0.1, 0.5, 0.9}, []float32{1, 0.5, 0.25}
	n, err := newNormalizer(mean, std)
	if err != nil {
		t.Fatal(err)
	}
	pixels, got := make([]uint8, 3*33), make([]float32, 3*33)
	for i := range pixels {
		pixels[i] = uint8(i * 2)
	}
	n.apply(got, pixels, nil)
	for i, v := range got {
		want := (float64(pixels[i])/255 - float64(mean[i%3])) / float64(std[i%3])
		if math.Abs(float64(v)-want) > 1e-6 {
			t.Fatalf("pixel %d is %v, want %v", i, v, want)
		}
	}
	if _, err := newNormalizer(mean[:2], std[:2]); err == nil {
		t.Error("two channels are accepted")
	}
}

func BenchmarkApply(b *testing.B) {
	n, err := newNormalizer([]float32{mnistMean}, []float32{mnistStd})
	if err != nil {
		b.Fatal(err)
	}
	src, dst := make([]uint8, 64*pixels), make([]float32, 64*pixels)
	for i := range src {
		src[i] = uint8(i * i >> 3)
	}
	for name, f := range map[string]func([]float32, []uint8){"go": n.applyGo,
		"fast": func(d []float32, p []uint8) { n.apply(d, p, nil) }} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(src)))
			for b.Loop() {
				f(dst, src)
			}
		})
	}
}
