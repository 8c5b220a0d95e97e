package link

import (
	"bytes"
	"context"
	"io"
	"slices"
	"testing"

	"fspda/cpu"
	"fspda/device/devicetest"
	"fspda/dist"
)

// sentFrames records what a link writes.
type sentFrames struct {
	headers  []header
	payloads [][]byte
}

func (s *sentFrames) RecvMsg(any) error { return io.EOF }

func (s *sentFrames) SendMsg(m any) error {
	f := m.(*outFrame)
	h, err := decodeHeader((*[headerSize]byte)(f.header), len(f.payload))
	s.headers, s.payloads = append(s.headers, h), append(s.payloads, f.payload)
	return err
}

// Fragments never straddle the segments of a body, and together they are the body.
func TestFragments(t *testing.T) {
	for _, body := range []segments{nil, {[]byte("head"), []byte("0123456789"), []byte("x")}} {
		out := &sentFrames{}
		n := &Node{opt: Options{Agents: 2, LogBytes: 1, chunk: 3}}
		p := newPeer(n, 1)
		n.peers = []*peer{nil, p}
		p.out[reports].append(sentMessage{t: 9, body: body, rawSize: body.size()})
		p.link = newLink(p, out, true)
		if some, err := p.link.writeNext(false); !some || err != nil {
			t.Fatal(some, err)
		}
		if got := slices.Concat(out.payloads...); !bytes.Equal(got, slices.Concat(body...)) {
			t.Errorf("%q was sent as %q", slices.Concat(body...), got)
		}
		for k, h := range out.headers {
			if h.kind != kindData || h.stream != reports || h.t != 9 || int(h.total) != body.size() ||
				len(out.payloads[k]) > 3 {
				t.Errorf("fragment %d of %d bytes: %+v", k, len(out.payloads[k]), h)
			}
		}
		if want := map[int]int{0: 1, 15: 2 + 4 + 1}[body.size()]; len(out.headers) != want {
			t.Errorf("%d frames of %d bytes, want %d", len(out.headers), body.size(), want)
		}
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
		got, arrives, err := (&bodyCodec{pool: dev, dim: largeDim}).decode(0, body, true, func() { done++ })
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
	swap(t, m, largeDim, 0, 3)
	k := 3
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
