package nats

import (
	"crypto/rand"
	"encoding/binary"
	"net"
	"sync"

	"go.uber.org/zap"
)

// relayConn copies between a connection inside this process, whose other end belongs to gRPC, and
// packets of NATS. A lost packet ends the connection.
type relayConn struct {
	peer  *peer
	id    uint64
	inner net.Conn
	queue chan []byte // Packets that were received and not read. A nil packet is the last one.
	next  uint64      // The number of the packet that must arrive next. The goroutine that receives uses it.
	done  chan struct{}
	once  sync.Once
}

// relaySlot holds the current relayed connection of a peer.
type relaySlot struct {
	mu      sync.Mutex
	current *relayConn // The connection; nil: none.
}

// get returns the connection with an id, nil if it is not the current one.
func (s *relaySlot) get(id uint64) *relayConn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil || s.current.id != id {
		return nil
	}
	return s.current
}

// end closes the current connection.
func (s *relaySlot) end() {
	s.mu.Lock()
	current := s.current
	s.mu.Unlock()
	current.close()
}

// randomID returns a number that, with overwhelming probability, nobody has drawn before.
func randomID() uint64 {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint64(b[:])
}

// startRelay starts a relayed connection, in place of an earlier one. The other end of inner
// belongs to gRPC.
func (p *peer) startRelay(id uint64, inner net.Conn) *relayConn {
	r := &relayConn{peer: p, id: id, inner: inner, queue: make(chan []byte, relayQueue), done: make(chan struct{})}
	p.relay.mu.Lock()
	earlier := p.relay.current
	p.relay.current = r
	p.relay.mu.Unlock()
	earlier.close()
	p.discovery.background.Go(r.write)
	p.discovery.background.Go(r.read)
	return r
}

// receiveRelayed handles a packet of a relayed connection.
func (p *peer) receiveRelayed(id, seq uint64, payload []byte) {
	r := p.relay.get(id)
	switch {
	case r != nil:
	case p.id < p.discovery.opt.Self: // The packet belongs to an earlier connection.
		return
	case seq != 0: // The packet belongs to a connection of an earlier process.
		_ = p.publish(packetEnd, id, 0, nil)
		return
	default:
		inner, err := p.discovery.agent.Connect(p.discovery.open)
		if err != nil {
			return // the node closes
		}
		r = p.startRelay(id, inner)
	}
	if seq != r.next {
		p.discovery.log.Debug("NATS lost a part of a relayed connection", zap.Int("peer", p.id))
		r.close()
		return
	}
	r.next++
	select {
	case r.queue <- payload:
	default: // the other end ignores the flow control
		r.close()
	}
}

// write copies the received packets to gRPC.
func (r *relayConn) write() {
	defer r.close()
	for {
		select {
		case b := <-r.queue:
			if b == nil {
				return
			}
			if _, err := r.inner.Write(b); err != nil {
				return
			}
		case <-r.done:
			return
		}
	}
}

// read copies the bytes that gRPC writes to packets.
func (r *relayConn) read() {
	defer r.close()
	buf := make([]byte, maxRelayPacket)
	for seq := uint64(0); ; seq++ {
		n, err := r.inner.Read(buf)
		if err != nil || r.peer.publish(packetData, r.id, seq, buf[:n]) != nil {
			return
		}
	}
}

// finish closes the connection after the received bytes are read, since the other end has closed
// it. A nil connection is closed.
func (r *relayConn) finish() {
	if r == nil {
		return
	}
	select {
	case r.queue <- nil:
	default: // the other end ignores the flow control
		r.close()
	}
}

// close ends the connection at both ends. A nil connection is closed.
func (r *relayConn) close() {
	if r == nil {
		return
	}
	r.once.Do(func() {
		close(r.done)
		_ = r.inner.Close()
		_ = r.peer.publish(packetEnd, r.id, 0, nil)
	})
}
