package freeport

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

const first, last = 20000, 32767 // Below the ports that systems give to any program, from 32768 on.

// Port is a port of 127.0.0.1 that is reserved until it is closed.
type Port struct {
	Number int
	udp    net.PacketConn
}

// Reserve reserves a port at which no program listens.
func Reserve() (p *Port, err error) {
	for range 100 {
		p = &Port{Number: first + rand.IntN(last-first+1)}
		if p.udp, err = net.ListenPacket("udp", p.Address()); err != nil {
			continue
		}
		var l net.Listener
		if l, err = net.Listen("tcp", p.Address()); err == nil {
			return p, l.Close()
		}
		p.Close()
	}
	return nil, fmt.Errorf("none of 100 ports from %d to %d is free: %w", first, last, err)
}

// Address returns the address of the port on this machine.
func (p *Port) Address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.Number)) }

// Close ends the reservation. A server at the port is not affected.
func (p *Port) Close() { p.udp.Close() }
