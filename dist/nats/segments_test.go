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

// Fragments never straddle the segments of a body, and together they are the body, from any byte
// on.
func TestFramesOfSegments(t *testing.T) {
	body := segments{[]byte("head"), []byte("0123456789"), []byte("x")}
	whole := slices.Concat(body...)
	r := sentMessage{body: body, size: body.size(), rawSize: body.size()}
	for from := range len(whole) {
		var got []byte
		for f := range frames(exchanges, r, from, 3) {
			if int(f.offset) != from+len(got) || len(f.payload) == 0 || len(f.payload) > 3 {
				t.Fatalf("from %d: a fragment of %d bytes at %d", from, len(f.payload), f.offset)
			}
			got = append(got, f.payload...)
		}
		if !bytes.Equal(got, whole[from:]) {
			t.Errorf("from %d: %q", from, got)
		}
	}
	count := 0
	for f := range frames(exchanges, sentMessage{}, 0, 3) {
		if count++; len(f.payload) != 0 {
			t.Errorf("%d bytes of an empty body", len(f.payload))
		}
	}
	if count != 1 {
		t.Errorf("%d frames of an empty body, want 1", count)
	}
}

// A large message is encoded to the same bytes whether it is copied or sent in place, and is
// decoded equally on any device. Memory that is used in place is released once, when it is not
// needed any more.
func TestLargeBodiesInPlace(t *testing.T) {
	v := ramp(1, 2, largeDim)
	pool := dist.NewPool(cpu.New())
	c := bodyCodec{pool: pool, dim: largeDim}
	b := pool.Get(largeDim)
	pool.Device().Write(b.V, v)
	m := dist.Message{Values: []*dist.Buffer{b}, Arrives: 3}
	whole, err := c.encode(m)
	if err != nil {
		t.Fatal(err)
	}
	parts, ok := c.encodeInPlace(m)
	if !ok || !bytes.Equal(slices.Concat(parts...), whole) {
		t.Fatalf("in place: %v, the bytes differ", ok)
	}
	if _, ok := (&bodyCodec{pool: dist.NewPool(devicetest.NewFloat64()), dim: largeDim}).encodeInPlace(m); ok {
		t.Error("values that are not float32 on the host were sent in place")
	}
	for name, dev := range map[string]*dist.Pool{"host": pool, "elsewhere": dist.NewPool(devicetest.NewFloat64())} {
		body := append((&bodyPool{}).get(len(whole)), whole...)
		done := 0
		got, arrives, err := (&bodyCodec{pool: dev, dim: largeDim}).decode(body, func() { done++ })
		if err != nil || arrives != 3 || len(got) != 1 {
			t.Fatalf("%s: %d vectors, %g, %v", name, len(got), arrives, err)
		}
		if inPlace := dev == pool; inPlace != (done == 0) {
			t.Errorf("%s: the body was released %d times while its values are in use", name, done)
		}
		back := make([]float32, largeDim)
		dev.Device().Read(back, got[0].V)
		if !slices.Equal(back, v) {
			t.Errorf("%s: the values changed", name)
		}
		if got[0].Release(); done != 1 {
			t.Errorf("%s: the body was released %d times, want once", name, done)
		}
	}
}

// The buffers of large messages, and the memory that receives them, are reused: a long run needs no
// more than a short one.
func TestLargeMessagesTakeNoMemory(t *testing.T) {
	m := openMesh(t, 2, withDirect)
	k := m.directFrames(t, 0)
	ctx := context.Background()
	before := heap()
	for i := range 60 {
		for self := range 2 {
			if err := send(ctx, m[self], 1-self, k+i, ramp(self, k+i, largeDim)); err != nil {
				t.Fatal(err)
			}
		}
		for self := range 2 {
			if _, err := receive(ctx, m[self], 1-self, k+i); err != nil {
				t.Fatal(err)
			}
		}
	}
	if after := heap(); after > before+16*4*largeDim {
		t.Errorf("%d bytes more are in use after 60 exchanges of %d", after-before, 4*largeDim)
	}
}
