package nats

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"fspda/cpu"
	"fspda/device/devicetest"
	"fspda/dist"
)

// Pieces never straddle the parts of a body, and together they are the body, from any byte on.
func TestFramesOfSegments(t *testing.T) {
	body := segments{[]byte("head"), []byte("0123456789"), []byte("x")}
	whole := slices.Concat(body...)
	r := record{body: body, size: body.size(), raw: body.size()}
	for from := range len(whole) {
		var got []byte
		for f := range frames(exchanges, r, from, 3) {
			if int(f.offset) != from+len(got) || len(f.piece) == 0 || len(f.piece) > 3 {
				t.Fatalf("from %d: a piece of %d bytes at %d", from, len(f.piece), f.offset)
			}
			got = append(got, f.piece...)
		}
		if !bytes.Equal(got, whole[from:]) {
			t.Errorf("from %d: %q", from, got)
		}
	}
	count := 0
	for f := range frames(exchanges, record{}, 0, 3) {
		if count++; len(f.piece) != 0 {
			t.Errorf("%d bytes of an empty body", len(f.piece))
		}
	}
	if count != 1 {
		t.Errorf("%d frames of an empty body, want 1", count)
	}
}

// A large message is the same bytes whether it is copied or sent from where it lies, and is read
// the same way on any device. What is sent or read in place is let go of once, when nobody needs
// it.
func TestLargeBodiesInPlace(t *testing.T) {
	v := ramp(1, 2, largeDim)
	pool := dist.NewPool(cpu.New())
	c := contents{pool: pool, dim: largeDim}
	b := pool.Get(largeDim)
	pool.Device().Write(b.V, v)
	m := dist.Message{Values: []*dist.Buffer{b}, Arrives: 3}
	whole, err := c.encode(m)
	if err != nil {
		t.Fatal(err)
	}
	parts, ok := c.share(m)
	if !ok || !bytes.Equal(slices.Concat(parts...), whole) {
		t.Fatalf("shared: %v, the bytes differ", ok)
	}
	if _, ok := (&contents{pool: dist.NewPool(devicetest.NewFloat64()), dim: largeDim}).share(m); ok {
		t.Error("numbers that are no float32 of the host went as if they were")
	}
	for name, dev := range map[string]*dist.Pool{"host": pool, "elsewhere": dist.NewPool(devicetest.NewFloat64())} {
		body := append((&bodies{}).get(len(whole)), whole...)
		done := 0
		got, arrives, err := (&contents{pool: dev, dim: largeDim}).decode(body, func() { done++ })
		if err != nil || arrives != 3 || len(got) != 1 {
			t.Fatalf("%s: %d vectors, %g, %v", name, len(got), arrives, err)
		}
		if inPlace := dev == pool; inPlace != (done == 0) {
			t.Errorf("%s: the body was let go of %d times while its numbers are in use", name, done)
		}
		back := make([]float32, largeDim)
		dev.Device().Read(back, got[0].V)
		if !slices.Equal(back, v) {
			t.Errorf("%s: the numbers changed", name)
		}
		if got[0].Release(); done != 1 {
			t.Errorf("%s: the body was let go of %d times, want once", name, done)
		}
	}
}

// The buffers of large messages, and the memory that they arrive in, are used again: a long run
// takes no more than a short one.
func TestLargeMessagesTakeNoMemory(t *testing.T) {
	m := openMesh(t, 2, doors)
	k := m.direct(t, 0)
	ctx := context.Background()
	before := heap()
	for i := range 60 {
		for self := range 2 {
			if err := say(ctx, m[self], 1-self, k+i, ramp(self, k+i, largeDim)); err != nil {
				t.Fatal(err)
			}
		}
		for self := range 2 {
			if _, err := listen(ctx, m[self], 1-self, k+i); err != nil {
				t.Fatal(err)
			}
		}
	}
	if after := heap(); after > before+16*4*largeDim {
		t.Errorf("%d bytes more are in use after 60 exchanges of %d", after-before, 4*largeDim)
	}
}
