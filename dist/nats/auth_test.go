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

// withCertificates writes certificates for all agents and returns an edit that gives each node its
// own.
func withCertificates(t *testing.T, agents int) func(o *Options) {
	t.Helper()
	dir := t.TempDir()
	if err := WriteCredentials(dir, "test", agents, time.Hour); err != nil {
		t.Fatal(err)
	}
	return func(o *Options) { o.TLS = credentials(t, dir, "test", o.Self) }
}

// An agent that sends in the name of another one, with everything that it can know of both, is not
// believed. The forgery is logged once, and the run continues.
func TestImpersonation(t *testing.T) {
	core, lines := observer.New(zapcore.WarnLevel)
	certified := withCertificates(t, 3)
	m := openMesh(t, 3, func(o *Options) {
		certified(o)
		o.Log = zap.New(core)
	})
	swap(t, m, 5, 0, 3)
	if n := lines.Len(); n != 0 {
		t.Fatalf("%d warnings before any forgery: %v", n, lines.All()[0])
	}
	own := m[2].peers[1].currentKeys() // the impostor's keys for the agent that it deceives
	for name, f := range m.forgeries(t) {
		before := m[1].Stats().Dropped
		for _, keys := range []*pairKeys{nil, own} {
			if f.kind == kindHello && keys == nil {
				continue // it is not authentic, and is answered: see below
			}
			if err := m[2].conn.Publish(m[2].subject(1, "0"), m.forge(f, keys)); err != nil {
				t.Fatal(err)
			}
		}
		if err := m[2].conn.Flush(); err != nil {
			t.Fatal(err)
		}
		for begin := time.Now(); m[1].Stats().Dropped == before; time.Sleep(time.Millisecond) {
			if time.Since(begin) > 5*time.Second {
				t.Fatalf("%s was accepted", name)
			}
		}
	}
	// A handshake of an invented incarnation, without a tag, is answered with a hello and has no
	// other effect.
	f := m.forgedHello(t, 12345, m[0].auth.cert())
	text := appendFrame(nil, &frame{kind: kindHello, to: 1, run: m[0].runHash, incarnation: 12345,
		total: uint32(len(f.payload)), raw: uint32(len(f.payload)), payload: f.payload})
	if err := m[2].conn.Publish(m[2].subject(1, "0"), text); err != nil {
		t.Fatal(err)
	}
	swap(t, m, 5, 3, 20)
	if p := m[1].peers[0]; p.incarnation != m[0].incarnation {
		t.Error("the impostor was accepted as agent 0")
	}
	if n := lines.FilterMessageSnippet("dropped a frame").Len(); n != 1 || lines.Len() != 1 {
		t.Errorf("logged %d warnings, %d of them about the forgery, want one", lines.Len(), n)
	}
	if err := m[1].Failure(); err != nil {
		t.Error(err)
	}
}

// forgeries are frames that agent 2 sends to agent 1 in the name of agent 0.
func (m mesh) forgeries(t *testing.T) map[string]frame {
	no, err := json.Marshal(refusal{Field: "seed", Connected: 2, Incarnation: m[1].incarnation, Cert: m[0].auth.cert()})
	if err != nil {
		t.Fatal(err)
	}
	late := [numStreams]uint64{99, 99, 99}
	return map[string]frame{
		"a message": {kind: kindData, seq: m[1].peers[0].in[exchanges].next, t: 3, total: 36, raw: 36,
			payload: make([]byte, 36)},
		"an acknowledgement":                   {kind: kindAck, payload: (&ack{next: late, stable: late}).append(nil)},
		"a request":                            {kind: kindRequest, seq: 0},
		"a refusal":                            {kind: kindRefuse, payload: no},
		"a handshake":                          m.forgedHello(t, m[0].incarnation, m[0].auth.cert()),
		"a handshake with its own certificate": m.forgedHello(t, m[0].incarnation, m[2].auth.cert()),
	}
}

func (m mesh) forgedHello(t *testing.T, incarnation uint64, cert []byte) frame {
	text, err := json.Marshal(hello{Incarnation: incarnation, Echo: m[1].incarnation, Connected: true,
		Identity: m[0].opt.Identity, Next: [numStreams]uint64{1000, 1000, 1000}, Cert: cert})
	if err != nil {
		t.Fatal(err)
	}
	return frame{kind: kindHello, payload: text}
}

// forge encodes a frame from agent 0 to agent 1, with a tag of agent 2 if keys are given.
func (m mesh) forge(f frame, keys *pairKeys) []byte {
	f.from, f.to, f.run, f.incarnation = 0, 1, m[0].runHash, m[0].incarnation
	if f.kind != kindData {
		f.total, f.raw = uint32(len(f.payload)), uint32(len(f.payload))
	}
	if keys == nil {
		return appendFrame(nil, &f)
	}
	f.flags |= flagAuthenticated
	return m[2].auth.appendTag(appendFrame(nil, &f), keys)
}

// A replayed handshake of an earlier incarnation does not bring that incarnation back, with or
// without certificates.
func TestPastIncarnationIsIgnored(t *testing.T) {
	for name, edit := range map[string]func(*Options){"without certificates": func(*Options) {},
		"with": withCertificates(t, 2)} {
		t.Run(name, func(t *testing.T) {
			m := openMesh(t, 2, edit)
			swap(t, m, 5, 0, 3)
			lines, first := m[0].Save(), m[0]
			keys := first.peers[1].currentKeys()
			m[0].Close()
			o := options(t, 0, 2)
			o.Server.Join = []string{m[1].Address()}
			edit(&o)
			m[0] = open(t, o)
			if err := m[0].Start(lines, 0); err != nil {
				t.Fatal(err)
			}
			swap(t, m, 5, 3, 6)
			handshake, err := json.Marshal(hello{Incarnation: first.incarnation, Echo: m[1].incarnation,
				Connected: true, Identity: o.Identity,
				Next: [numStreams]uint64{6, 0, 0}, Cert: first.auth.cert()})
			if err != nil {
				t.Fatal(err)
			}
			f := frame{kind: kindHello, to: 1, run: first.runHash, incarnation: first.incarnation,
				total: uint32(len(handshake)),
				raw:   uint32(len(handshake)), payload: handshake}
			text := appendFrame(nil, &f)
			if keys != nil {
				f.flags = flagAuthenticated
				text = first.auth.appendTag(appendFrame(nil, &f), keys)
			}
			if err := m[0].conn.Publish(m[0].subject(1, "0"), text); err != nil {
				t.Fatal(err)
			}
			swap(t, m, 5, 6, 20)
			if p := m[1].peers[0]; p.incarnation != m[0].incarnation {
				t.Error("an earlier incarnation of agent 0 is connected again")
			}
			if n := m[1].Stats().Dropped; n != 0 {
				t.Errorf("%d frames were dropped: the handshake was invalid already in its time", n)
			}
		})
	}
}

// Both ends derive the same two keys, which no other pair, direction or incarnation has.
func TestKeysOfAPair(t *testing.T) {
	edit := withCertificates(t, 3)
	s := make([]*authenticator, 3)
	for i := range s {
		o := options(t, i, 3)
		edit(&o)
		var err error
		if s[i], err = newAuthenticator(o, uint64(100+i)); err != nil {
			t.Fatal(err)
		}
	}
	secret := func(a, b int) []byte {
		v, err := s[a].sharedSecret(s[b].cert(), b)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if !bytes.Equal(secret(0, 1), secret(1, 0)) || bytes.Equal(secret(0, 1), secret(0, 2)) {
		t.Error("the shared secrets of a pair differ, or two pairs share one")
	}
	there, back := s[0].deriveKeys(secret(0, 1), 1, 101), s[1].deriveKeys(secret(1, 0), 0, 100)
	frame := s[0].appendTag([]byte("a frame"), there)
	if err := back.verify(frame); err != nil {
		t.Errorf("a valid tag is refused: %v", err)
	}
	if receiverOf(frame) != 101 {
		t.Errorf("it is for incarnation %d", receiverOf(frame))
	}
	again := s[0].appendTag([]byte("a frame"), there)
	if bytes.Equal(frame, again) {
		t.Error("two frames have the same nonce")
	}
	for i := range frame {
		bad := slices.Clone(frame)
		if bad[i] ^= 1; back.verify(bad) == nil {
			t.Errorf("the change of byte %d was not detected", i)
		}
	}
	for name, keys := range map[string]*pairKeys{"its own": there,
		"a later incarnation": s[1].deriveKeys(secret(1, 0), 0, 102),
		"another pair":        s[2].deriveKeys(secret(2, 0), 0, 100)} {
		if keys.verify(frame) == nil {
			t.Errorf("the tag is valid under the keys of %s", name)
		}
	}
	for name, c := range map[string]struct {
		der  []byte
		rank int
	}{"another's": {s[2].cert(), 1}, "no certificate": {nil, 1}, "noise": {[]byte("noise"),
		1}, "one too long": {make([]byte, maxCert+1), 1}} {
		if _, err := s[0].sharedSecret(c.der, c.rank); err == nil {
			t.Errorf("%s was accepted as the certificate of agent %d", name, c.rank)
		}
	}
}
