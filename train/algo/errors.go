package algo

import "fmt"

// MissingMessageError reports a lost message that an algorithm requires.
type MissingMessageError struct {
	Algorithm     string
	T, Self, Peer int
}

func (e *MissingMessageError) Error() string {
	return fmt.Sprintf("algo: %s: agent %d received no message from agent %d in iteration %d: this algorithm requires "+
		"reliable links", e.Algorithm, e.Self, e.Peer, e.T)
}
