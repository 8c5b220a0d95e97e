package web

import (
	"container/list"
	"context"
	"net"
	"sync"
)

// mostConnections is how many a server holds at a time.
const mostConnections = 256

// boundedListener holds a number of connections. For one beyond it the connection goes that has
// asked for nothing for longest, so that those who only hold on, or send their request a byte at a
// time, keep nobody else out. Where all have an answer under way, the new one goes.
type boundedListener struct {
	net.Listener

	mu   sync.Mutex
	room int        // for so many more
	idle *list.List // of guests without a request at work, who waits longest first
}

// guest is a connection of a boundedListener.
type guest struct {
	net.Conn
	of     *boundedListener
	place  *list.Element // in idle; nil while a request is at work
	closed bool
}

// Accept returns the next connection for which there is room.
func (l *boundedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if g := l.welcome(c); g != nil {
			return g, nil
		}
		_ = c.Close()
	}
}

// welcome makes room for a connection; nil where there is none to be made.
func (l *boundedListener) welcome(c net.Conn) *guest {
	l.mu.Lock()
	var leaves *guest
	if l.room == 0 {
		if first := l.idle.Front(); first != nil {
			leaves = first.Value.(*guest)
			l.forget(leaves)
		}
	}
	if l.room == 0 {
		l.mu.Unlock()
		return nil
	}
	l.room--
	g := &guest{Conn: c, of: l}
	g.place = l.idle.PushBack(g)
	l.mu.Unlock()
	if leaves != nil {
		_ = leaves.Conn.Close()
	}
	return g
}

// forget takes a connection off the books. The lock must be held.
func (l *boundedListener) forget(g *guest) {
	if g.closed {
		return
	}
	g.closed = true
	l.room++
	if g.place != nil {
		l.idle.Remove(g.place)
		g.place = nil
	}
}

// Close closes the connection and makes room.
func (g *guest) Close() error {
	g.of.mu.Lock()
	g.of.forget(g)
	g.of.mu.Unlock()
	return g.Conn.Close()
}

// served marks the beginning and the end of a request's work.
func (g *guest) served(begins bool) {
	g.of.mu.Lock()
	defer g.of.mu.Unlock()
	switch {
	case g.closed:
	case begins && g.place != nil:
		g.of.idle.Remove(g.place)
		g.place = nil
	case !begins && g.place == nil:
		g.place = g.of.idle.PushBack(g)
	}
}

// guestKey is where the context of a request has its guest.
type guestKey struct{}

// withGuest remembers the connection of a request in its context.
func withGuest(ctx context.Context, c net.Conn) context.Context {
	if g, ok := c.(*guest); ok {
		return context.WithValue(ctx, guestKey{}, g)
	}
	return ctx
}
