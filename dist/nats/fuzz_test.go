package nats

import (
	"bytes"
	"reflect"
	"testing"

	"go.uber.org/zap"
	"google.golang.org/grpc/mem"

	"fspda/device/devicetest"
	"fspda/dist"
)

func FuzzFrame(f *testing.F) {
	f.Add(appendFrame(nil, &frame{kind: kindData, from: 1, to: 2, seq: 3, t: 4, total: 5, raw: 5,
		piece: []byte("hello")}))
	f.Add([]byte(magic))
	sealed := appendFrame(nil, &frame{kind: kindData, flags: flagSealed, total: 2, raw: 2, piece: []byte("ab")})
	f.Add(append(sealed, make([]byte, sealSize)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		fr, err := decodeFrame(b)
		if err != nil {
			return
		}
		again := appendFrame(nil, &fr)
		if fr.flags&flagSealed != 0 {
			again = append(again, b[len(b)-sealSize:]...)
		}
		if !bytes.Equal(again, b) {
			t.Errorf("%x is read, and written as %x", b, again)
		}
	})
}

// What a member's stream brings to the door takes no more memory than messages of the run, whatever
// it says.
func FuzzDirect(f *testing.F) {
	n := &Node{opt: Options{Agents: 2, Self: 0, Log: zap.NewNop()}, log: zap.NewNop(), codec: contents{dim: 100},
		run: 7, life: 9}
	whole := frame{kind: kindData, from: 1, run: 7, life: 5, total: 5, raw: 5, piece: []byte("hello")}
	f.Add(appendFrame(nil, &whole))
	whole.flags = flagGuarded
	f.Add(appendFrame(nil, &whole))
	whole.seq, whole.total, whole.raw = 1, 10, 10
	f.Add(appendFrame(appendFrame(nil, &whole), &whole))
	f.Fuzz(func(t *testing.T, b []byte) {
		p := newPeer(n, 1)
		p.life, p.settled = 5, true
		n.peers = []*peer{nil, p}
		for range 2 {
			in := inFrame{mem.BufferSlice{mem.SliceBuffer(b[:len(b)/2]), mem.SliceBuffer(b[len(b)/2:])}}
			if n.direct(1, &in) != nil {
				break
			}
		}
		for _, line := range p.in {
			if len(line.parcels) > window {
				t.Errorf("%d messages wait", len(line.parcels))
			}
			for _, m := range line.parcels {
				if m.total > n.codec.limit() || len(m.body) > m.total || cap(m.body) > 2*n.codec.limit() {
					t.Errorf("a message of %d bytes, %d of them there, in memory of %d", m.total, len(m.body),
						cap(m.body))
				}
			}
		}
	})
}

func FuzzBody(f *testing.F) {
	pool := dist.NewPool(devicetest.NewFloat64())
	c := contents{pool: pool, dim: 50}
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
	coded := contents{pool: pool, dim: 50, codec: codec}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, c := range []contents{c, coded} {
			values, _, err := c.decode(b, func() {})
			if err != nil {
				continue
			}
			total := 0
			for _, v := range values {
				total += v.V.Len()
				v.Release()
			}
			if total > len(b) {
				t.Errorf("%d bytes make %d numbers", len(b), total)
			}
		}
	})
}

func FuzzControl(f *testing.F) {
	f.Add([]byte(`{"life":1,"next":[1,2],"identity":[{"name":"run","value":"x"}]}`))
	f.Add([]byte(`{"field":"seed","ours":"1","theirs":"2"}`))
	f.Add((&ack{full: true}).append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if h, err := decodeHello(b); err == nil {
			difference([]Field{{"run", "x"}, {"seed", "1"}}, h.Identity)
		}
		_, _ = decodeRefusal(b)
		if a, err := decodeAck(b); err == nil && !bytes.Equal(a.append(nil), b) {
			t.Errorf("%x is read, and written as another", b)
		}
	})
}

func FuzzUnpack(f *testing.F) {
	text := bytes.Repeat([]byte("fspda "), 50)
	for _, p := range []Compression{S2, Zstd} {
		f.Add(p.pack(text), len(text))
	}
	f.Fuzz(func(t *testing.T, b []byte, raw int) {
		if raw < 0 || raw > 1<<16 {
			return
		}
		out, err := unpack(&parcel{packed: true, raw: raw, total: len(b), body: b})
		if err == nil && len(out) != raw {
			t.Errorf("%d bytes unpacked, %d were announced", len(out), raw)
		}
	})
}

// The lines of a checkpoint come from a disk.
func FuzzLines(f *testing.F) {
	n := &Node{opt: Options{Agents: 2, Self: 0}, codec: contents{dim: 10}}
	n.peers = []*peer{nil, newPeer(n, 1)}
	n.peers[1].out[exchanges].push(7, segments{[]byte("hello")}, 5, nil)
	f.Add(n.Save())
	f.Fuzz(func(t *testing.T, b []byte) {
		m := &Node{opt: n.opt, codec: n.codec}
		m.peers = []*peer{nil, newPeer(m, 1)}
		if m.restore(b) == nil && !bytes.Equal(m.Save(), b) {
			t.Errorf("%x is restored, and saved as %x", b, m.Save())
		}
	})
}

// An agent's lines are the same after a checkpoint.
func TestLinesRoundTrip(t *testing.T) {
	n := &Node{opt: Options{Agents: 3, Self: 1}, codec: contents{dim: 10}}
	n.peers = []*peer{newPeer(n, 0), nil, newPeer(n, 2)}
	n.peers[0].out[exchanges].push(7, segments{[]byte("hello")}, 5, nil)
	n.peers[2].out[reports].push(8, segments{[]byte("world")}, 9, nil)
	n.peers[2].in[exchanges].next = 4
	n.written.Store(77)
	m := &Node{opt: n.opt, codec: n.codec}
	m.peers = []*peer{newPeer(m, 0), nil, newPeer(m, 2)}
	if err := m.restore(n.Save()); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if i != 1 && !reflect.DeepEqual(m.peers[i].out, n.peers[i].out) {
			t.Errorf("the lines to agent %d changed", i)
		}
	}
	if m.WireBytes() != 77 || m.peers[2].in[exchanges].next != 4 || m.peers[2].in[exchanges].stable != 4 {
		t.Error("numbers changed")
	}
}

// Packing gives back what it took, and leaves what it cannot shorten.
func TestPacking(t *testing.T) {
	text := bytes.Repeat([]byte("fspda "), 500)
	for _, p := range []Compression{NoCompression, S2, Zstd} {
		out := p.pack(text)
		if p != NoCompression && len(out) > len(text)/10 {
			t.Errorf("%s: %d bytes of %d", p, len(out), len(text))
		}
		back, err := unpack(&parcel{packed: len(out) != len(text), raw: len(text), total: len(out), body: out})
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
