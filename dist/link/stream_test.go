package link

import (
	"reflect"
	"strings"
	"testing"

	"go.uber.org/zap"
)

// Numbers that are skipped share one entry of the log, are sent as empty messages, and survive a
// checkpoint.
func TestSkippedNumbers(t *testing.T) {
	n := &Node{opt: Options{Agents: 2}, bodyCodec: bodyCodec{dim: 10}}
	n.peers = []*peer{nil, newPeer(n, 1)}
	o := &n.peers[1].out[reports]
	message := func(text string) sentMessage { return sentMessage{body: segments{[]byte(text)}, rawSize: len(text)} }
	o.append(message("kept"))
	o.restored = o.next
	o.append(message("first"))
	o.append(message("second"))
	const arrived = 20_000_000
	o.skip(arrived)
	if len(o.log) != 4 || o.next != arrived+2 {
		t.Fatalf("%d entries before number %d", len(o.log), o.next)
	}
	for seq, want := range map[uint64]string{0: "kept", 1: "", 2: "", arrived - 1: "", arrived: "first",
		arrived + 1: "second"} {
		m, ok := o.find(seq)
		if !ok || m.seq != seq || m.size != len(want) || want != "" && string(m.body[0]) != want {
			t.Errorf("message %d: %v, number %d, %q", seq, ok, m.seq, m.body)
		}
	}
	if _, ok := o.find(o.next); ok {
		t.Error("a message was found that is not in the log")
	}
	m := &Node{opt: n.opt, bodyCodec: n.bodyCodec}
	m.peers = []*peer{nil, newPeer(m, 1)}
	if err := m.restore(n.Save()); err != nil {
		t.Fatal(err)
	}
	if back := m.peers[1].out[reports]; back.next != o.next || !reflect.DeepEqual(back.log[2:], o.log[2:]) {
		t.Error("the checkpoint has another log")
	}
	for _, c := range []struct{ stable, first uint64 }{{1, 1}, {500, 1}, {arrived, arrived},
		{arrived + 2, arrived + 2}} {
		if o.acknowledge(0, c.stable); o.firstKept() != c.first {
			t.Errorf("the log begins at %d when %d is stable, want %d", o.firstKept(), c.stable, c.first)
		}
	}
	if o.bytes != 0 {
		t.Errorf("%d bytes of an empty log", o.bytes)
	}
}

// A handshake that says that messages arrived which cannot have been sent is refused, and changes
// nothing. One of a process that saw messages of an earlier process is accepted.
func TestHandshakeAheadIsRefused(t *testing.T) {
	n := &Node{opt: Options{Agents: 2}, log: zap.NewNop()}
	at := func(stream int, next, arrived uint64) *hello {
		h := &hello{From: 1, Incarnation: 5, Session: 3}
		h.Next[stream], h.Arrived[stream] = next, arrived
		return h
	}
	for stream := range durableStreams {
		p := newPeer(n, 1)
		establish := func(h *hello) *refusal { return p.establish(newLink(p, nil, true), h, false) }
		refuse := func(arrived uint64) {
			t.Helper()
			r := establish(at(stream, arrived, arrived))
			if r == nil || r.Field != fieldAhead || !strings.Contains(r.Ours, "before number") {
				t.Errorf("stream %d, arrived %d: %+v, want a refusal", stream, arrived, r)
			}
		}
		refuse(maxUnsaved + 1)
		if p.link != nil || len(p.out[reports].log) != 0 || p.out[stream].consumed != 0 {
			t.Error("a refused handshake changed the state")
		}
		if r := establish(at(stream, 7, 9)); r != nil {
			t.Fatalf("refused: %+v", r)
		}
		refuse(10) // the same processes: nothing was sent
		if r := establish(at(stream, 9, 9)); r != nil {
			t.Errorf("refused: %+v", r)
		}
	}
	if _, err := decodeHello(encodeJSON(at(exchanges, 3, 3+window+1))); err == nil {
		t.Error("a handshake was decoded in which more messages wait than the window allows")
	}
}
