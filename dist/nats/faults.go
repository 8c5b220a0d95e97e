package nats

import (
	"errors"
	"net"
	"time"
)

// FaultAction says what happens to a connection when bytes pass.
type FaultAction struct {
	Break bool          // the connection breaks
	Delay time.Duration // the bytes are late
}

// FaultInjector returns the action for the next bytes from or to an agent. It is for tests.
type FaultInjector func(to int) FaultAction

var errInjected = errors.New("nats: an injected fault")

// withFaults returns a connection to an agent on which the fault injector acts.
func (n *Node) withFaults(to int, c net.Conn) net.Conn {
	if n.opt.Faults == nil || c == nil {
		return c
	}
	return &faultyConn{c, func() error {
		action := n.opt.Faults(to)
		if action.Break {
			_ = c.Close()
			return errInjected
		}
		time.Sleep(action.Delay)
		return nil
	}}
}

type faultyConn struct {
	net.Conn
	pass func() error
}

func (c *faultyConn) Write(b []byte) (int, error) {
	if err := c.pass(); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

func (c *faultyConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err == nil {
		err = c.pass()
	}
	return n, err
}
