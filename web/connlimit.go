package web

import (
	"container/list"
	"context"
	"net"
	"sync"
)

// maxConnections is the number of connections that a server holds at a time.
const maxConnections = 256

// limitedListener holds at most maxConnections connections. A new one beyond the limit evicts the
// connection that has been idle for longest, so that clients that send nothing, or a request byte
// by byte, cannot keep others out. If every connection is serving a request, the new one is closed.
// (netutil.LimitListener makes new connections wait instead, and cannot evict.)
type limitedListener struct {
	net.Listener

	mu   sync.Mutex
	free int        // connections that may still be opened
	idle *list.List // list of *trackedConn that serve no request, the one idle for longest first
}

// trackedConn is a connection of a limitedListener.
type trackedConn struct {
	net.Conn
	listener *limitedListener
	element  *list.Element // element of listener.idle; nil while the connection serves a request
	closed   bool
}

// Accept returns the next connection that the limit admits.
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c := l.admit(conn); c != nil {
			return c, nil
		}
		_ = conn.Close()
	}
}

// admit registers a connection, if need be by evicting an idle one. It returns nil if all
// connections serve requests.
func (l *limitedListener) admit(conn net.Conn) *trackedConn {
	l.mu.Lock()
	var evicted *trackedConn
	if l.free == 0 {
		if first := l.idle.Front(); first != nil {
			evicted = first.Value.(*trackedConn)
			l.release(evicted)
		}
	}
	if l.free == 0 {
		l.mu.Unlock()
		return nil
	}
	l.free--
	c := &trackedConn{Conn: conn, listener: l}
	c.element = l.idle.PushBack(c)
	l.mu.Unlock()
	if evicted != nil {
		_ = evicted.Conn.Close()
	}
	return c
}

// release unregisters a connection. The caller must hold the lock.
func (l *limitedListener) release(c *trackedConn) {
	if c.closed {
		return
	}
	c.closed = true
	l.free++
	if c.element != nil {
		l.idle.Remove(c.element)
		c.element = nil
	}
}

// Close closes and unregisters the connection.
func (c *trackedConn) Close() error {
	c.listener.mu.Lock()
	c.listener.release(c)
	c.listener.mu.Unlock()
	return c.Conn.Close()
}

// setBusy records that a request of this connection begins or ends.
func (c *trackedConn) setBusy(busy bool) {
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	switch {
	case c.closed:
	case busy && c.element != nil:
		c.listener.idle.Remove(c.element)
		c.element = nil
	case !busy && c.element == nil:
		c.element = c.listener.idle.PushBack(c)
	}
}

// connKey is the context key of a request's *trackedConn.
type connKey struct{}

// connContext stores the connection of a request in its context.
func connContext(ctx context.Context, conn net.Conn) context.Context {
	if c, ok := conn.(*trackedConn); ok {
		return context.WithValue(ctx, connKey{}, c)
	}
	return ctx
}
