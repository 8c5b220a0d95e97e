package web

import (
	"container/list"
	"net"
	"testing"
)

// Connections with an answer under way stay; a newcomer goes where all have one, and is welcome
// when one of them is done.
func TestBusyConnectionsStay(t *testing.T) {
	l := &boundedListener{room: 2, idle: list.New()}
	a, b := l.welcome(nowhere{}), l.welcome(nowhere{})
	a.served(true)
	c := l.welcome(nowhere{})
	if c == nil || a.closed || !b.closed {
		t.Error("the idle one should have gone")
	}
	c.served(true)
	if l.welcome(nowhere{}) != nil {
		t.Error("there was no room")
	}
	a.served(false)
	if l.welcome(nowhere{}) == nil || !a.closed || c.closed {
		t.Error("there was room for one")
	}
	a.served(false) // it is gone: nothing happens
	if c.Close(); l.room != 1 || l.idle.Len() != 1 {
		t.Errorf("room for %d, %d idle", l.room, l.idle.Len())
	}
	c.Close()
	if l.room != 1 {
		t.Error("a connection left twice")
	}
}

// nowhere is a connection that only closes.
type nowhere struct{ net.Conn }

func (nowhere) Close() error { return nil }
