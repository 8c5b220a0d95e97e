package nats

import (
	"encoding/json"
	"fmt"
)

// Field is a property of a run on which all nodes must agree.
type Field struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// HandshakeError reports a node whose run differs from the run of this one.
type HandshakeError struct {
	Peer         int // the rank that the other node claims
	Field        string
	Ours, Theirs string
}

func (e *HandshakeError) Error() string {
	return fmt.Sprintf("nats: agent %d belongs to another run: its %s is %s, ours is %s: start both with the same "+
		"program, configuration and data", e.Peer, e.Field, e.Theirs, e.Ours)
}

// ExitCode returns 2, the exit status for bad input.
func (e *HandshakeError) ExitCode() int { return 2 }

// Bounds of the content of a handshake.
const (
	maxHello  = 64 << 10
	maxFields = 512
)

// hello is the payload of a kindHello frame.
type hello struct {
	Incarnation uint64 `json:"life"`    // of the sender's process
	Echo        uint64 `json:"echo"`    // the incarnation of the receiver that the sender knows; 0: none
	Connected   bool   `json:"settled"` // the sender has received a hello with its own incarnation in Echo
	Durable     bool   `json:"durable"` // the sender writes checkpoints
	// for each stream, the message of the receiver that the sender's agent consumes next
	Next     [numStreams]uint64 `json:"next"`
	Identity []Field            `json:"identity,omitempty"`
	Direct   *directOffer       `json:"door,omitempty"` // where the sender accepts large messages; nil: nowhere
	Cert     []byte             `json:"cert,omitempty"` // certificate of the sender, if it has one
}

// refusal is the payload of a kindRefuse frame: the first property that differs, from the sender's
// view.
type refusal struct {
	Field       string `json:"field"`
	Ours        string `json:"ours"`
	Theirs      string `json:"theirs"`
	Connected   int    `json:"settled"` // number of nodes with which the sender has completed a handshake
	Incarnation uint64 `json:"life"`    // incarnation of the process that is refused
	Cert        []byte `json:"cert,omitempty"`
}

func decodeHello(b []byte) (h hello, err error) {
	if len(b) > maxHello {
		return h, &FrameError{Got: fmt.Sprintf("a handshake of %d bytes, expected at most %d", len(b), maxHello)}
	}
	if err := json.Unmarshal(b, &h); err != nil {
		return h, &FrameError{Got: "a handshake that is not JSON: " + err.Error()}
	}
	if h.Incarnation == 0 || len(h.Identity) > maxFields {
		return h, &FrameError{Got: fmt.Sprintf("a handshake of incarnation %d with %d fields", h.Incarnation,
			len(h.Identity))}
	}
	return h, h.Direct.check()
}

func decodeRefusal(b []byte) (r refusal, err error) {
	if len(b) > maxHello {
		return r, &FrameError{Got: fmt.Sprintf("a refusal of %d bytes, expected at most %d", len(b), maxHello)}
	}
	if err := json.Unmarshal(b, &r); err != nil {
		return r, &FrameError{Got: "a refusal that is not JSON: " + err.Error()}
	}
	return r, nil
}

// firstDifference returns the first field in which two identities differ. Both list the same names
// in the same order, unless their programs differ.
func firstDifference(ours, theirs []Field) (field, our, their string, differ bool) {
	for i, f := range ours {
		switch {
		case i >= len(theirs):
			return f.Name, f.Value, "missing", true
		case theirs[i].Name != f.Name:
			return "program", "one with the property " + f.Name, "one with the property " + clip(theirs[i].Name), true
		case theirs[i].Value != f.Value:
			return f.Name, f.Value, clip(theirs[i].Value), true
		}
	}
	if len(theirs) > len(ours) {
		return clip(theirs[len(ours)].Name), "missing", clip(theirs[len(ours)].Value), true
	}
	return "", "", "", false
}

// clip truncates a string from the network for logs and errors.
func clip(s string) string {
	if len(s) > 80 {
		return s[:80] + "…"
	}
	return s
}
