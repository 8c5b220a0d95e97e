package link

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"runtime"
	"testing"

	"go.uber.org/zap"
	"google.golang.org/grpc/mem"

	"fspda/device/devicetest"
	"fspda/dist"
)

// No input from the other end of a link makes this end take more memory than messages of the run.
func FuzzFrame(f *testing.F) {
	n := &Node{opt: Options{Agents: 2, Self: 0, LogBytes: 1}, log: zap.NewNop(), bodyCodec: bodyCodec{dim: 100},
		failed: make(chan struct{})}
	data := func(h header, payload string) []byte {
		h.kind, h.raw = kindData, h.total
		return append(h.append(nil), payload...)
	}
	f.Add(data(header{total: 5}, "hello"), data(header{seq: 1, total: 5}, "world"))
	f.Add(data(header{total: 10}, "hello"), data(header{total: 10}, "world"))
	refuse := `{"field":"process","connected":1}`
	refused := header{kind: kindRefuse, total: uint32(len(refuse)), raw: uint32(len(refuse))}
	f.Add(append(refused.append(nil), refuse...), []byte{})
	f.Add((&header{kind: kindAck, flags: flagFull, ack: ack{next: [numStreams]uint64{1, 2, 3}}}).append(nil), []byte{})
	f.Fuzz(func(t *testing.T, a, b []byte) {
		p := newPeer(n, 1)
		n.peers = []*peer{nil, p}
		p.link = newLink(p, nil, true)
		for k, b := range [][]byte{a, b} {
			in := inFrame{mem.BufferSlice{mem.SliceBuffer(b[:len(b)/2]), mem.SliceBuffer(b[len(b)/2:])}}
			if h, err := in.decode(); err == nil && !bytes.Equal(h.append(nil), b[:headerSize]) {
				t.Errorf("%x is decoded, and encoded as %x", b[:headerSize], h.append(nil))
			}
			if p.link.handle(&in) != nil {
				break
			}
			m := p.link.partial
			for _, in := range p.in {
				if len(in.queue) > k+1 {
					t.Errorf("%d messages from %d frames", len(in.queue), k+1)
				}
				for _, whole := range in.queue {
					m = whole
				}
			}
			if m != nil && (m.total > n.bodyCodec.limit() || len(m.body) > m.total ||
				cap(m.body) > 2*n.bodyCodec.limit()) {
				t.Errorf("a message of %d bytes with %d received occupies %d bytes", m.total, len(m.body), cap(m.body))
			}
		}
	})
}

func FuzzBody(f *testing.F) {
	pool := dist.NewPool(devicetest.NewFloat64())
	c := bodyCodec{pool: pool, dim: 50}
	b := pool.Get(3)
	pool.Device().Write(b.V, []float32{1, 2, 3})
	body, err := c.encode(dist.Message{Values: []*dist.Buffer{b, b}, Arrives: 2})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(body)
	topk, err := dist.ParseMask("randk", 0.1, []int{50}, 1)
	if err != nil {
		f.Fatal(err)
	}
	codec, err := dist.ParseCompressor("topk", dist.CompressorOptions{Mask: topk, Sizes: []int{50}, Seed: 1})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(append([]byte{codecOfRun, 1, 0, 0, 5, 0, 0, 0}, make([]byte, 8+24)...))
	coded := bodyCodec{pool: pool, dim: 50, codec: codec}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, c := range []bodyCodec{c, coded} {
			values, _, err := c.decode(0, b, true, func() {})
			if err != nil {
				continue
			}
			total := 0
			for _, v := range values {
				total += v.V.Len()
				v.Release()
			}
			if total > len(b) {
				t.Errorf("%d bytes decode to %d numbers", len(b), total)
			}
		}
	})
}

// Handshakes may be anything.
func FuzzControl(f *testing.F) {
	n := &Node{opt: Options{Agents: 3, Self: 1, Run: "x"}, log: zap.NewNop()}
	f.Add([]byte(`{"run":"x","from":2,"incarnation":1,"next":[1,2],"arrived":[1,2],"identity":[{"name":"run","value":"x"}]}`))
	f.Add([]byte(`{"field":"seed","ours":"1","theirs":"2"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if h, err := decodeHello(b); err == nil {
			firstDifference([]Field{{"run", "x"}, {"seed", "1"}}, h.Identity)
			if n.authenticate(t.Context(), &h) == nil && h.From != 2 {
				t.Errorf("a handshake of agent %d was accepted", h.From)
			}
		}
	})
}

func FuzzDecompress(f *testing.F) {
	text := bytes.Repeat([]byte("fspda "), 50)
	for _, p := range []Compression{S2, Zstd} {
		f.Add(p.compress(text), len(text))
	}
	f.Fuzz(func(t *testing.T, b []byte, raw int) {
		if raw < 0 || raw > 1<<16 {
			return
		}
		out, err := decompress(&recvMessage{compressed: true, rawSize: raw, total: len(b), body: b})
		if err == nil && len(out) != raw {
			t.Errorf("%d bytes decompressed, %d announced", len(out), raw)
		}
	})
}

// The stream state in a checkpoint may be damaged.
func FuzzStreamState(f *testing.F) {
	n := &Node{opt: Options{Agents: 2, Self: 0}, bodyCodec: bodyCodec{dim: 10}}
	n.peers = []*peer{nil, newPeer(n, 1)}
	n.peers[1].out[exchanges].append(sentMessage{t: 7, body: segments{[]byte("hello")}, rawSize: 5})
	f.Add(n.Save())
	f.Fuzz(func(t *testing.T, b []byte) {
		m := &Node{opt: n.opt, bodyCodec: n.bodyCodec}
		m.peers = []*peer{nil, newPeer(m, 1)}
		if m.restore(b) == nil && !bytes.Equal(m.Save(), b) {
			t.Errorf("%x is restored, and saved as %x", b, m.Save())
		}
	})
}

// Streams are unchanged by saving and restoring them.
func TestStreamStateRoundTrip(t *testing.T) {
	n := &Node{opt: Options{Agents: 3, Self: 1}, bodyCodec: bodyCodec{dim: 10}}
	n.peers = []*peer{newPeer(n, 0), nil, newPeer(n, 2)}
	n.peers[0].out[exchanges].append(sentMessage{t: 7, body: segments{[]byte("hello")}, rawSize: 5})
	n.peers[2].out[reports].append(sentMessage{t: 8, body: segments{[]byte("world")}, rawSize: 9})
	n.peers[2].in[exchanges].next = 4
	n.wireBytesSent.Store(77)
	m := &Node{opt: n.opt, bodyCodec: n.bodyCodec}
	m.peers = []*peer{newPeer(m, 0), nil, newPeer(m, 2)}
	if err := m.restore(n.Save()); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if i != 1 && !reflect.DeepEqual(m.peers[i].out, n.peers[i].out) {
			t.Errorf("the streams to agent %d changed", i)
		}
	}
	if m.WireBytes() != 77 || m.peers[2].in[exchanges].next != 4 || m.peers[2].in[exchanges].stable != 0 {
		t.Error("the sequence numbers changed")
	}
}

// Decompression inverts compression. What does not get shorter is left uncompressed.
func TestCompression(t *testing.T) {
	text := bytes.Repeat([]byte("fspda "), 500)
	for _, p := range []Compression{NoCompression, S2, Zstd} {
		out := p.compress(text)
		if p != NoCompression && len(out) > len(text)/10 {
			t.Errorf("%s: %d bytes of %d", p, len(out), len(text))
		}
		back, err := decompress(&recvMessage{compressed: len(out) != len(text), rawSize: len(text), total: len(out),
			body: out})
		if err != nil || !bytes.Equal(back, text) {
			t.Errorf("%s: %v", p, err)
		}
		if q, err := ParseCompression(string(p)); err != nil || q != p {
			t.Errorf("%s is read as %s, %v", p, q, err)
		}
	}
	if _, err := ParseCompression("zip"); err == nil {
		t.Error("zip was accepted")
	}
}

// A compressed message with a second part, which claims to be large, is refused before memory is
// allocated for that part.
func TestCompressionInParts(t *testing.T) {
	text := bytes.Repeat([]byte("fspda "), 500)
	body := Zstd.compress(text)
	body = append(body, 0x28, 0xb5, 0x2f, 0xfd, 0xc0, 0) // a frame with a window of 1 kB, and its size in 8 bytes
	body = binary.LittleEndian.AppendUint64(body, 1<<30)
	body = append(body, 1, 0, 0) // the last block, empty
	before := allocated()
	_, err := decompress(&recvMessage{compressed: true, rawSize: len(text), total: len(body), body: body})
	if took := allocated() - before; err == nil || took > 1<<20 {
		t.Errorf("%d bytes were allocated for a message of %d, error %v", took, len(text), err)
	}
}

// allocated returns the bytes allocated so far.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}
