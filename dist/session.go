package dist

import (
	"context"
	"errors"
	"time"
)

// Talk is what two processes say to each other, as long as both live: what one says the other hears
// once, whole and in order, however often the network between them fails. What is under way when a
// process ends is lost, and all talks with it end.
type Session interface {
	// Say hands a record to the other end. It waits where that is slow to hear. The record must not
	// change any more.
	Send(ctx context.Context, record []byte) error
	// Hear waits for the next record.
	Recv(ctx context.Context) ([]byte, error)
}

// ErrTalkOver means that the process at the other end is gone, or that another one has taken its
// place: a new talk begins with that.
var ErrSessionClosed = errors.New("dist: the talk is over: the other process has ended")

// Switchboard opens talks of one agent with others.
type SessionOpener interface {
	// Talk waits until another agent is there, and begins a talk with it. There is one talk at a
	// time with each.
	OpenSession(ctx context.Context, with int) (Session, error)
	// Silent is for how long nothing has been heard from another agent's process, which says that
	// it lives every now and then. It counts from the start where nothing was heard at all.
	SilentFor(with int) time.Duration
}
