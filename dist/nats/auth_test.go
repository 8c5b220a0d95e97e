package nats

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// members writes certificates for so many agents, and returns what gives each node its own.
func members(t *testing.T, agents int) func(o *Options) {
	t.Helper()
	dir := t.TempDir()
	if err := WriteCredentials(dir, "test", agents, time.Hour); err != nil {
		t.Fatal(err)
	}
	return func(o *Options) { o.TLS = credentials(t, dir, "test", o.Self) }
}

// A member of the mesh that speaks in another's name, with all that it can know of both, is not
// believed: it is noted once, and the run goes on.
func TestMemberThatLies(t *testing.T) {
	core, lines := observer.New(zapcore.WarnLevel)
	certified := members(t, 3)
	m := openMesh(t, 3, func(o *Options) {
		certified(o)
		o.Log = zap.New(core)
	})
	swap(t, m, 5, 0, 3)
	if n := lines.Len(); n != 0 {
		t.Fatalf("%d warnings before anybody lied: %v", n, lines.All()[0])
	}
	liar := m[2].signet
	own := m[2].peers[1].present() // its keys towards the one that it lies to
	forge := func(f frame, keys *seals) []byte {
		f.from, f.to, f.run, f.life = 0, 1, m[0].run, m[0].life
		if f.kind != kindData {
			f.total, f.raw = uint32(len(f.piece)), uint32(len(f.piece))
		}
		if keys == nil {
			return appendFrame(nil, &f)
		}
		f.flags |= flagSealed
		return liar.seal(appendFrame(nil, &f), keys)
	}
	greeting := func(life uint64, cert []byte) frame {
		text, err := json.Marshal(hello{Life: life, Echo: m[1].life, Settled: true, Identity: m[0].opt.Identity,
			Next: [streams]uint64{1000, 1000, 1000}, Cert: cert})
		if err != nil {
			t.Fatal(err)
		}
		return frame{kind: kindHello, piece: text}
	}
	no, err := json.Marshal(refusal{Field: "seed", Settled: 2, Life: m[1].life, Cert: m[0].signet.cert()})
	if err != nil {
		t.Fatal(err)
	}
	next := m[1].peers[0].in[exchanges].next
	body := make([]byte, 36)
	for name, f := range map[string]frame{
		"a message": {kind: kindData, seq: next, t: 3, total: 36, raw: 36, piece: body},
		"an acknowledgement": {kind: kindAck,
			piece: (&ack{next: [streams]uint64{99, 99, 99}, stable: [streams]uint64{99, 99, 99}}).append(nil)},
		"a wish":                         {kind: kindWant, seq: 0},
		"a refusal":                      {kind: kindRefuse, piece: no},
		"a handshake":                    greeting(m[0].life, m[0].signet.cert()),
		"a handshake with its own proof": greeting(m[0].life, liar.cert()),
	} {
		before := m[1].Stats().Dropped
		for _, keys := range []*seals{nil, own} {
			if f.kind == kindHello && keys == nil {
				continue // it proves nothing, and is answered: see below
			}
			if err := m[2].conn.Publish(m[2].subject(1, "0"), forge(f, keys)); err != nil {
				t.Fatal(err)
			}
		}
		if err := m[2].conn.Flush(); err != nil {
			t.Fatal(err)
		}
		for begin := time.Now(); m[1].Stats().Dropped == before; time.Sleep(time.Millisecond) {
			if time.Since(begin) > 5*time.Second {
				t.Fatalf("%s: not refused", name)
			}
		}
	}
	// A life that is made up, without a seal: it is told who is here, and that is all.
	f := greeting(12345, m[0].signet.cert())
	f.life = 12345
	text := appendFrame(nil, &frame{kind: kindHello, to: 1, run: m[0].run, life: 12345, total: uint32(len(f.piece)),
		raw: uint32(len(f.piece)), piece: f.piece})
	if err := m[2].conn.Publish(m[2].subject(1, "0"), text); err != nil {
		t.Fatal(err)
	}
	swap(t, m, 5, 3, 20)
	if p := m[1].peers[0]; p.life != m[0].life {
		t.Error("the liar was taken for agent 0")
	}
	if n := lines.FilterMessageSnippet("dropped a frame").Len(); n != 1 || lines.Len() != 1 {
		t.Errorf("logged %d times, %d of them of it, want once", lines.Len(), n)
	}
	if err := m[1].Failure(); err != nil {
		t.Error(err)
	}
}

// What an agent said in an earlier life does not bring that life back, with or without
// certificates.
func TestEarlierLifeStaysOver(t *testing.T) {
	for name, edit := range map[string]func(*Options){"without certificates": func(*Options) {},
		"with": members(t, 2)} {
		t.Run(name, func(t *testing.T) {
			m := openMesh(t, 2, edit)
			swap(t, m, 5, 0, 3)
			lines, first := m[0].Save(), m[0]
			keys := first.peers[1].present()
			m[0].Close()
			o := options(t, 0, 2)
			o.Server.Join = []string{m[1].Address()}
			edit(&o)
			m[0] = open(t, o)
			if err := m[0].Start(lines, 0); err != nil {
				t.Fatal(err)
			}
			swap(t, m, 5, 3, 6)
			greeting, err := json.Marshal(hello{Life: first.life, Echo: m[1].life, Settled: true, Identity: o.Identity,
				Next: [streams]uint64{6, 0, 0}, Cert: first.signet.cert()})
			if err != nil {
				t.Fatal(err)
			}
			f := frame{kind: kindHello, to: 1, run: first.run, life: first.life, total: uint32(len(greeting)),
				raw: uint32(len(greeting)), piece: greeting}
			text := appendFrame(nil, &f)
			if keys != nil {
				f.flags = flagSealed
				text = first.signet.seal(appendFrame(nil, &f), keys)
			}
			if err := m[0].conn.Publish(m[0].subject(1, "0"), text); err != nil {
				t.Fatal(err)
			}
			swap(t, m, 5, 6, 20)
			if p := m[1].peers[0]; p.life != m[0].life {
				t.Error("an earlier life of agent 0 is back")
			}
			if n := m[1].Stats().Dropped; n != 0 {
				t.Errorf("%d frames were dropped: it was not a good greeting in its time", n)
			}
		})
	}
}

// Both ends draw the same two keys, which no other pair, direction or life has.
func TestKeysOfAPair(t *testing.T) {
	edit := members(t, 3)
	s := make([]*signet, 3)
	for i := range s {
		o := options(t, i, 3)
		edit(&o)
		var err error
		if s[i], err = newSignet(o, uint64(100+i)); err != nil {
			t.Fatal(err)
		}
	}
	secret := func(a, b int) []byte {
		v, err := s[a].secret(s[b].cert(), b)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if !bytes.Equal(secret(0, 1), secret(1, 0)) || bytes.Equal(secret(0, 1), secret(0, 2)) {
		t.Error("the secrets are not those of the pairs")
	}
	there, back := s[0].between(secret(0, 1), 1, 101), s[1].between(secret(1, 0), 0, 100)
	frame := s[0].seal([]byte("a frame"), there)
	if err := back.check(frame); err != nil {
		t.Errorf("a good seal: %v", err)
	}
	if sealedFor(frame) != 101 {
		t.Errorf("it is for life %d", sealedFor(frame))
	}
	again := s[0].seal([]byte("a frame"), there)
	if bytes.Equal(frame, again) {
		t.Error("two frames have one number")
	}
	for i := range frame {
		bad := slices.Clone(frame)
		if bad[i] ^= 1; back.check(bad) == nil {
			t.Errorf("byte %d was changed and nobody saw it", i)
		}
	}
	for name, keys := range map[string]*seals{"its own": there, "a later life": s[1].between(secret(1, 0), 0, 102),
		"another pair": s[2].between(secret(2, 0), 0, 100)} {
		if keys.check(frame) == nil {
			t.Errorf("the seal is good for the keys of %s", name)
		}
	}
	for name, c := range map[string]struct {
		der  []byte
		rank int
	}{"another's": {s[2].cert(), 1}, "no certificate": {nil, 1}, "noise": {[]byte("noise"),
		1}, "a long one": {make([]byte, maxCert+1), 1}} {
		if _, err := s[0].secret(c.der, c.rank); err == nil {
			t.Errorf("%s was taken for the certificate of agent %d", name, c.rank)
		}
	}
}
