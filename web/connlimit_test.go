package web

import (
	"container/list"
	"net"
	"testing"
)

// Connections that serve a request stay. A new connection is refused while all are busy and
// admitted when one of them becomes idle.
func TestBusyConnectionsStay(t *testing.T) {
	l := &limitedListener{free: 2, idle: list.New()}
	a, b := l.admit(fakeConn{}), l.admit(fakeConn{})
	a.setBusy(true)
	c := l.admit(fakeConn{})
	if c == nil || a.closed || !b.closed {
		t.Error("want the idle connection b evicted and c admitted")
	}
	c.setBusy(true)
	if l.admit(fakeConn{}) != nil {
		t.Error("a connection was admitted although all were busy")
	}
	a.setBusy(false)
	if l.admit(fakeConn{}) == nil || !a.closed || c.closed {
		t.Error("want the idle connection a evicted and a new one admitted")
	}
	a.setBusy(false) // no effect on a closed connection
	if c.Close(); l.free != 1 || l.idle.Len() != 1 {
		t.Errorf("%d connections free and %d idle, want 1 and 1", l.free, l.idle.Len())
	}
	c.Close()
	if l.free != 1 {
		t.Errorf("%d connections free after a second Close, want 1", l.free)
	}
}

// fakeConn is a connection that can only be closed.
type fakeConn struct{ net.Conn }

func (fakeConn) Close() error { return nil }
