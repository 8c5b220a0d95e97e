package dist

import (
	"context"
	"errors"
	"time"
)

// Session is a reliable connection between two processes. While both run, each record that one
// sends arrives at the other once, whole and in order, regardless of failures of the network. When
// either process ends, records in flight are lost and its sessions are closed.
type Session interface {
	// Send sends a record to the other end. It blocks while the other end is slow to receive. The
	// record must not change any more.
	Send(ctx context.Context, record []byte) error
	// Recv waits for the next record.
	Recv(ctx context.Context) ([]byte, error)
}

// CheckedSession is a Session with records that may be refused.
type CheckedSession interface {
	Session
	// Take waits for the next record and passes it to take. A record about which take returns an
	// [InvalidError] is refused: its sender is named, and the record is awaited again.
	Take(ctx context.Context, take func(record []byte) error) error
}

// ErrSessionClosed means that the process at the other end has ended, or was replaced by a new one,
// with which a new session can be opened.
var ErrSessionClosed = errors.New("dist: the session is closed: the other process has ended")

// SessionOpener opens sessions of one agent with others.
type SessionOpener interface {
	// OpenSession waits until another agent is running and opens a session with it. There is at
	// most one session with each agent.
	OpenSession(ctx context.Context, with int) (Session, error)
	// SilentFor returns the time since another agent's process was last heard; a running process
	// sends heartbeats. It counts from the start if nothing was heard.
	SilentFor(with int) time.Duration
}
