package nats

import (
	"encoding/json"
	"fmt"
)

// Field is one thing that all members of a run must agree on.
type Field struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// HandshakeError reports a node that belongs to another run, or to none.
type HandshakeError struct {
	Peer         int // the agent that the other says it is
	Field        string
	Ours, Theirs string
}

func (e *HandshakeError) Error() string {
	return fmt.Sprintf("nats: agent %d is of another run: its %s is %s, ours %s: start both with the same program, configuration and data", e.Peer, e.Field, e.Theirs, e.Ours)
}

// ExitCode returns 2, the exit status for bad input.
func (e *HandshakeError) ExitCode() int { return 2 }

// Bounds of what a handshake may hold.
const (
	maxHello  = 64 << 10
	maxFields = 512
)

// hello is the body of a kindHello frame.
type hello struct {
	Life     uint64          `json:"life"`    // drawn by the sender's process
	Echo     uint64          `json:"echo"`    // the life of the receiver as the sender knows it; 0: not at all
	Settled  bool            `json:"settled"` // the sender has heard its own life echoed
	Durable  bool            `json:"durable"` // the sender writes checkpoints
	Next     [streams]uint64 `json:"next"`    // the messages that the sender's agent will take next from the receiver
	Identity []Field         `json:"identity,omitempty"`
	Door     *directOffer    `json:"door,omitempty"` // where the sender takes large messages
	Cert     []byte          `json:"cert,omitempty"` // the sender's, where it has one
}

// refusal is the body of a kindRefuse frame: the first difference, as the sender sees it.
type refusal struct {
	Field   string `json:"field"`
	Ours    string `json:"ours"`
	Theirs  string `json:"theirs"`
	Settled int    `json:"settled"` // with how many the sender has shaken hands
	Life    uint64 `json:"life"`    // of the process that is refused
	Cert    []byte `json:"cert,omitempty"`
}

func decodeHello(b []byte) (h hello, err error) {
	if len(b) > maxHello {
		return h, &FrameError{Got: fmt.Sprintf("a handshake of %d bytes, at most %d make sense", len(b), maxHello)}
	}
	if err := json.Unmarshal(b, &h); err != nil {
		return h, &FrameError{Got: "a handshake that is not JSON: " + err.Error()}
	}
	if h.Life == 0 || len(h.Identity) > maxFields {
		return h, &FrameError{Got: fmt.Sprintf("a handshake of life %d with %d fields", h.Life, len(h.Identity))}
	}
	return h, h.Door.check()
}

func decodeRefusal(b []byte) (r refusal, err error) {
	if len(b) > maxHello {
		return r, &FrameError{Got: fmt.Sprintf("a refusal of %d bytes, at most %d make sense", len(b), maxHello)}
	}
	if err := json.Unmarshal(b, &r); err != nil {
		return r, &FrameError{Got: "a refusal that is not JSON: " + err.Error()}
	}
	return r, nil
}

// difference finds the first field in which two identities differ. Both list the same names in the
// same order, unless their programs differ.
func difference(ours, theirs []Field) (field, our, their string, differ bool) {
	for i, f := range ours {
		switch {
		case i >= len(theirs):
			return f.Name, f.Value, "not said", true
		case theirs[i].Name != f.Name:
			return "program", "one that speaks of " + f.Name, "one that speaks of " + clip(theirs[i].Name), true
		case theirs[i].Value != f.Value:
			return f.Name, f.Value, clip(theirs[i].Value), true
		}
	}
	if len(theirs) > len(ours) {
		return clip(theirs[len(ours)].Name), "not said", clip(theirs[len(ours)].Value), true
	}
	return "", "", "", false
}

// clip keeps what a stranger says out of the way.
func clip(s string) string {
	if len(s) > 80 {
		return s[:80] + "…"
	}
	return s
}
