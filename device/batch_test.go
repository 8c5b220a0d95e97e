package device_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"fspda/device"
)

// Byte b of channel c decodes to b·Scale[c] + Shift[c], rounded after the product and after the
// sum.
func TestBatchNumbers(t *testing.T) {
	b := device.Batch{Bytes: make([]uint8, 3*256), Scale: []float32{1 / 3.0, 0.017, 4}, Shift: []float32{-0.1, 7, -2},
		Y: make([]int32, 256)}
	for i := range b.Bytes {
		b.Bytes[i] = uint8(i / 3)
	}
	dst := make([]float32, 1000)
	got := b.Numbers(dst, 3)
	if len(got) != len(b.Bytes) || &got[0] != &dst[0] {
		t.Fatalf("%d numbers of %d bytes, want them in the given memory", len(got), len(b.Bytes))
	}
	for i, v := range got {
		// The product of an 8-bit and a 24-bit number is exact in float64.
		product := float32(float64(b.Bytes[i]) * float64(b.Scale[i%3]))
		if want := float32(float64(product) + float64(b.Shift[i%3])); math.Float32bits(v) != math.Float32bits(want) {
			t.Errorf("byte %d of channel %d is %v, want %v", b.Bytes[i], i%3, v, want)
		}
	}
	b.Rows, b.Y = []int32{200, 3}, b.Y[:2]
	for i, v := range b.Numbers(nil, 3) {
		if want := got[3*int(b.Rows[i/3])+i%3]; v != want {
			t.Errorf("number %d of rows %d is %v, want %v", i, b.Rows, v, want)
		}
	}
	b.Rows, b.Y = nil, make([]int32, 256)
	if got := b.Numbers(nil, 3); len(got) != len(b.Bytes) {
		t.Errorf("%d numbers with a nil dst", len(got))
	}
	x := []float32{1, 2}
	if got := (device.Batch{X: x}).Numbers(dst, 1); &got[0] != &x[0] {
		t.Error("X was copied")
	}
}

func TestBatchCheck(t *testing.T) {
	x, bytes, one, y := make([]float32, 12), make([]uint8, 12), []float32{1}, make([]int32, 2)
	three := []float32{1, 2, 3}
	for what, b := range map[string]device.Batch{
		"":                      {X: x, Y: y},
		"no error":              {Bytes: bytes, Scale: three, Shift: three, Y: y},
		"batch of 3 examples":   {X: x, Y: make([]int32, 3)},
		"11 numbers":            {X: x[1:], Y: y},
		"11 bytes":              {Bytes: bytes[1:], Scale: one, Shift: one, Y: y},
		"both":                  {X: x, Bytes: bytes, Scale: one, Shift: one, Y: y},
		"0 scales":              {Bytes: bytes, Y: y},
		"1 scales and 3 shifts": {Bytes: bytes, Scale: one, Shift: three, Y: y},
		"4 scales and 4 shifts": {Bytes: bytes[:10], Scale: make([]float32, 4), Shift: make([]float32, 4), Y: y},
		"batch has 0 numbers":   {Y: y},
	} {
		features := 6
		if strings.HasPrefix(what, "4 scales") {
			features = 5
		}
		err := b.Check(&device.Code{Batch: 2, Features: features})
		if fine := what == "" || what == "no error"; fine != (err == nil) || err != nil &&
			!strings.Contains(err.Error(), what) {
			t.Errorf("%q: %v", what, err)
		}
	}
}

// A slice of a batch holds the same examples in each form.
func TestBatchSlice(t *testing.T) {
	one := []float32{1}
	b := device.Batch{Bytes: []uint8{0, 1, 2, 3, 4, 5, 6, 7}, Scale: one, Shift: []float32{0}, Y: []int32{5, 6, 7, 8}}
	rows := device.Batch{Bytes: append([]uint8{9, 9}, b.Bytes...), Rows: []int32{1, 2, 3, 4}, Scale: one,
		Shift: []float32{0}, Y: b.Y}
	for _, of := range []device.Batch{b, rows, {X: b.Numbers(nil, 2), Y: b.Y}} {
		p := of.Slice(1, 3)
		if err := p.Check(&device.Code{Batch: 2, Features: 2}); err != nil {
			t.Error(err)
		}
		if got := p.Numbers(nil, 2); !slices.Equal(got, []float32{2, 3, 4, 5}) || !slices.Equal(p.Y, []int32{6, 7}) {
			t.Errorf("examples %v with labels %v", got, p.Y)
		}
	}
}

// A window gives its first tokens as features and its last as labels; a slice holds the same
// windows.
func TestBatchOfTokens(t *testing.T) {
	b := device.Batch{Tokens: []uint16{7, 8, 9, 65535, 1}, At: []int64{2, 0, 1}, Length: 2}
	if b.N() != 3 || b.Targets() != 6 {
		t.Fatalf("%d examples with %d labels, want 3 with 6", b.N(), b.Targets())
	}
	for _, c := range []struct {
		b             device.Batch
		inputs, after []float32
	}{
		{b, []float32{9, 65535, 7, 8, 8, 9}, []float32{65535, 1, 8, 9, 9, 65535}},
		{b.Slice(1, 2), []float32{7, 8}, []float32{8, 9}},
	} {
		labels := make([]float32, c.b.Targets())
		c.b.Labels(labels)
		if err := c.b.Check(&device.Code{Batch: c.b.N(), Features: 2, Labels: 2}); err != nil {
			t.Error(err)
		}
		if got := c.b.Numbers(nil, 2); !slices.Equal(got, c.inputs) || !slices.Equal(labels, c.after) {
			t.Errorf("tokens %v with labels %v, want %v with %v", got, labels, c.inputs, c.after)
		}
	}
	err := b.CheckTokens(10)
	if want := "token 1 of window 0, at place 3 of the stream, is 65535, want 0 to 9"; err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
	if err := b.CheckTokens(65536); err != nil {
		t.Error(err)
	}
	x := device.Batch{X: make([]float32, 6), Y: make([]int32, 6), Length: 2}
	if p := x.Slice(1, 3); p.N() != 2 || len(p.X) != 4 || len(p.Y) != 4 {
		t.Errorf("slice of two examples with two labels each: %d examples, %d numbers, %d labels", p.N(), len(p.X),
			len(p.Y))
	}
	x.Y = x.Y[:5]
	if err := x.Check(&device.Code{Batch: 2, Features: 2, Labels: 2}); err == nil {
		t.Error("five labels of examples with two each: no error")
	}
}

// A key passes unchanged through its four numbers, and slices have keys of their own.
func TestKeyNumbers(t *testing.T) {
	seen := map[uint64]bool{}
	for _, key := range []uint64{0, 1, 1<<16 - 1, 1 << 48, 0xfedcba9876543210, 1<<64 - 1} {
		b := device.Batch{Key: key, X: make([]float32, 6), Y: make([]int32, 3)}
		numbers := make([]float32, 4)
		b.KeyNumbers(numbers)
		if got := device.KeyOf(numbers); got != key {
			t.Errorf("key %x became %x", key, got)
		}
		if first := b.Slice(0, 1).Key; first != key {
			t.Errorf("the first slice has the key %x, want %x", first, key)
		}
		other := b.Slice(1, 3).Key
		if key == 0 && other != 0 || key != 0 && (other == 0 || other == key || seen[other]) {
			t.Errorf("a slice of a batch with the key %x has the key %x", key, other)
		}
		seen[other] = true
	}
}

// A label of mixed code is a class, a second class and a weight; without second classes, all weight
// is the first's. Parts of a batch take their own.
func TestMixedLabels(t *testing.T) {
	code := &device.Code{Batch: 3, Features: 1, Mixed: true, Gradient: true}
	b := device.Batch{X: make([]float32, 3), Y: []int32{4, 0, 2}}
	labels := func(b device.Batch) []float32 {
		part := *code
		part.Batch = b.N()
		if err := b.Check(&part); err != nil {
			t.Fatal(err)
		}
		v := make([]float32, part.LabelNumbers())
		b.Labels(v)
		return v
	}
	if got, want := labels(b), []float32{4, 4, 1, 0, 0, 1, 2, 2, 1}; !slices.Equal(got, want) {
		t.Errorf("labels %v without second classes, want %v", got, want)
	}
	b.Mix = []device.Mix{{Partner: 2, Weight: 0.75}, {Partner: 4, Weight: 0}, {Partner: 0, Weight: 1}}
	if got, want := labels(b.Slice(0, 2)), []float32{4, 2, 0.75, 0, 4, 0}; !slices.Equal(got, want) {
		t.Errorf("labels %v of the first two, want %v", got, want)
	}
	if got, want := labels(b.Slice(2, 3)), []float32{2, 0, 1}; !slices.Equal(got, want) {
		t.Errorf("labels %v of the last, want %v", got, want)
	}
	few, heavy := b, b
	few.Mix, heavy.Mix = b.Mix[1:], []device.Mix{{}, {Weight: 1.5}, {}}
	for what, c := range map[string]struct {
		batch device.Batch
		mixed bool
	}{"2 examples of 3": {few, true}, "1.5": {heavy, true}, "no loss that reads them": {b, false}} {
		of := *code
		of.Mixed = c.mixed
		if err := c.batch.Check(&of); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("error %v, want one with %q", err, what)
		}
	}
}
