package algo

import "fmt"

// MissingError reports a message that an algorithm cannot do without.
type MissingMessageError struct {
	Algorithm     string
	T, Self, Peer int
}

func (e *MissingMessageError) Error() string {
	return fmt.Sprintf("algo: %s: agent %d heard nothing from agent %d in iteration %d: this algorithm needs every agent in every iteration and cannot run on links that fail",
		e.Algorithm, e.Self, e.Peer, e.T)
}
