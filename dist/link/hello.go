package link

import (
	"encoding/json"
	"fmt"
)

// Field is a property of a run on which all nodes must agree.
type Field struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Names of the fields of a refusal that are no properties of the run.
const (
	fieldPosition = "stream position"
	fieldProcess  = "process"
	fieldAhead    = "message number"
)

// HandshakeError reports that another node refuses this one: their runs differ, or this one needs
// messages that the other has deleted.
type HandshakeError struct {
	Peer         int // the rank of the other node
	Field        string
	Ours, Theirs string
}

func (e *HandshakeError) Error() string {
	switch e.Field {
	case fieldPosition:
		return fmt.Sprintf("link: agent %d cannot send again what this agent needs: this agent continues %s, and "+
			"agent %d keeps %s. The checkpoints of this agent are lost, damaged or older than those that it wrote "+
			"last: restore its folder from a copy, or start the whole run again", e.Peer, e.Ours, e.Peer, e.Theirs)
	case fieldProcess:
		return fmt.Sprintf("link: agent %d is connected to another process that was started later as this agent: "+
			"start each agent once", e.Peer)
	case fieldAhead:
		return fmt.Sprintf("link: this agent has messages that agent %d cannot have sent: this agent continues %s, "+
			"and agent %d has sent %s. The checkpoints of one of the two are damaged or belong to another run: "+
			"restore its folder from a copy, or start the whole run again", e.Peer, e.Ours, e.Peer, e.Theirs)
	}
	return fmt.Sprintf("link: agent %d belongs to another run: its %s is %s, ours is %s: start both with the same "+
		"program, configuration and data", e.Peer, e.Field, e.Theirs, e.Ours)
}

// ExitCode returns 2, the exit status for bad input.
func (e *HandshakeError) ExitCode() int { return 2 }

// Bounds of the content of a handshake.
const (
	maxHello  = 64 << 10
	maxFields = 512
)

// hello is the payload of a kindHello frame, the first frame of each end of a stream. The node that
// has dialed sends first.
type hello struct {
	Run         string  `json:"run"`
	From        int     `json:"from"`        // The rank of the sender.
	Incarnation uint64  `json:"incarnation"` // The number that the sender's process has drawn.
	Session     uint64  `json:"session"`     // The number of the session, which the node that answers draws; 0: none.
	Connected   int     `json:"connected"`   // The number of nodes that are connected to the sender.
	Durable     bool    `json:"durable"`     // The sender writes checkpoints.
	Identity    []Field `json:"identity"`
	// Life is the number of agents that the sender's slot has had before.
	Life int `json:"life,omitempty"`
	// Expects is the number of agents that the receiver's slot has had before, as the sender knows.
	Expects int `json:"expects,omitempty"`
	// For each stream of the receiver's messages, the one that the sender's agent consumes next,
	// and the first one that has not arrived: from there on the receiver sends.
	Next    [numStreams]uint64 `json:"next"`
	Arrived [numStreams]uint64 `json:"arrived"`
}

// refusal is the payload of a kindRefuse frame: the first property that differs, from the sender's
// view.
type refusal struct {
	Field     string `json:"field"`
	Ours      string `json:"ours"`
	Theirs    string `json:"theirs"`
	Connected int    `json:"connected"` // number of nodes that are connected to the sender
}

// endsRefused reports whether the refused node is at fault, not the one that belongs to another
// run.
func (r refusal) endsRefused() bool {
	return r.Field == fieldPosition || r.Field == fieldProcess || r.Field == fieldAhead
}

func decodeHello(b []byte) (h hello, err error) {
	if err := decodeJSON(b, &h); err != nil {
		return h, err
	}
	if h.Incarnation == 0 || len(h.Identity) > maxFields {
		return h, &FrameError{Got: fmt.Sprintf("a handshake of incarnation %d with %d fields", h.Incarnation,
			len(h.Identity))}
	}
	for s, next := range h.Next {
		if h.Arrived[s] < next {
			return h, &FrameError{Got: fmt.Sprintf("a handshake in which message %d was consumed before it arrived",
				next)}
		}
		if h.Arrived[s]-next > window {
			return h, &FrameError{Got: fmt.Sprintf("a handshake in which %d messages wait for the agent, expected at "+
				"most %d", h.Arrived[s]-next, window)}
		}
	}
	return h, nil
}

func decodeJSON(b []byte, v any) error {
	if len(b) > maxHello {
		return &FrameError{Got: fmt.Sprintf("a handshake of %d bytes, expected at most %d", len(b), maxHello)}
	}
	if err := json.Unmarshal(b, v); err != nil {
		return &FrameError{Got: "a handshake that is not JSON: " + err.Error()}
	}
	return nil
}

// encodeJSON encodes a handshake or a refusal.
func encodeJSON(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic("link: cannot encode a handshake: " + err.Error()) // cannot happen: its fields are plain
	}
	return text
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
