package nats

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	client "github.com/nats-io/nats.go"
	"go.uber.org/zap"
)

// A packet is the content of one NATS message: a header, and a payload. All numbers are
// little-endian. Nothing in it is trusted: it says where to dial, or carries bytes of a connection
// whose ends authenticate each other.
//
//	0  magic "FSPW"       4  version, kind, a byte each; then two zero bytes
//	8  conn, seq          uint64 each: a relayed connection, and the number of the packet in it
const packetHeader = 24

const magic = "FSPW"

const (
	packetAsk   = iota + 1 // where does the receiver listen?
	packetOffer            // the answer, an offer as JSON
	packetData             // bytes of a relayed connection; the first packet opens it
	packetEnd              // the relayed connection has ended
)

const (
	maxRelayPacket = 64 << 10 // bytes of a relayed connection in one packet
	relayQueue     = 512      // packets of a relayed connection that wait to be read
	minAsk         = 50 * time.Millisecond
	maxAsk         = time.Second
)

// offer says where a node listens.
type offer struct {
	Addresses []string `json:"addresses"` // HOST:PORT, in the order in which to dial them; none: relayed only
	Routes    int      `json:"routes"`    // of the NATS server of the node's process
}

// Bounds of an offer.
const (
	maxAddresses  = 16
	maxAddressLen = 300
)

func decodeOffer(b []byte) (o offer, err error) {
	if err := json.Unmarshal(b, &o); err != nil || len(o.Addresses) > maxAddresses {
		return o, &FrameError{Got: fmt.Sprintf("an offer of %d addresses", len(o.Addresses))}
	}
	for _, a := range o.Addresses {
		if _, _, err := hostPort(a); err != nil || len(a) > maxAddressLen {
			return o, &FrameError{Got: fmt.Sprintf("an offer with the address %q", clip(a))}
		}
	}
	return o, nil
}

// publish sends a packet to the peer.
func (p *peer) publish(kind byte, conn, seq uint64, payload []byte) error {
	n := p.node
	b := make([]byte, 0, packetHeader+len(payload))
	b = append(append(b, magic...), Version, kind, 0, 0)
	b = binary.LittleEndian.AppendUint64(b, conn)
	b = binary.LittleEndian.AppendUint64(b, seq)
	return n.conn.Publish(n.subject(p.id, strconv.Itoa(n.opt.Self)), append(b, payload...))
}

// receive handles a NATS message.
func (n *Node) receive(m *client.Msg) {
	from, err := strconv.Atoi(m.Subject[strings.LastIndexByte(m.Subject, '.')+1:])
	if err == nil && (from < 0 || from >= len(n.peers) || n.peers[from] == nil || len(m.Data) < packetHeader ||
		string(m.Data[:4]) != magic) {
		err = &FrameError{Got: fmt.Sprintf("%d bytes over NATS that are no packet of this run", len(m.Data))}
	}
	if err == nil && m.Data[4] != Version {
		err = fmt.Errorf("nats: agent %d uses version %d of the protocol, this one %d: use the same program on all "+
			"machines", from, m.Data[4], Version)
		if n.opt.TLS.Routes == nil && n.ConnectedPeers() == 0 { // with certificates, packets are not to be trusted
			n.fail(err)
		}
	}
	if err == nil {
		le := binary.LittleEndian
		err = n.peers[from].receivePacket(m.Data[5], le.Uint64(m.Data[8:]), le.Uint64(m.Data[16:]),
			m.Data[packetHeader:])
	}
	if err != nil {
		n.drop(clip(m.Subject), err)
	}
}

func (p *peer) receivePacket(kind byte, conn, seq uint64, payload []byte) error {
	n := p.node
	switch {
	case kind == packetAsk && p.id > n.opt.Self:
		if n.open.Err() != nil { // the listener is closed
			return nil
		}
		return p.publish(packetOffer, 0, 0, encodeJSON(offer{n.direct.addresses, n.routes()}))
	case kind == packetOffer && p.id < n.opt.Self:
		o, err := decodeOffer(payload)
		if err != nil {
			return err
		}
		p.routes.Store(int64(o.Routes))
		select {
		case <-p.offers: // an older one
		default:
		}
		p.offers <- o // only this goroutine sends
		return nil
	case kind == packetData && len(payload) <= maxRelayPacket:
		p.receiveRelayed(conn, seq, payload)
		return nil
	case kind == packetEnd:
		p.relay.get(conn).finish()
		return nil
	}
	return &FrameError{Got: fmt.Sprintf("a packet of kind %d with %d bytes from agent %d", kind, len(payload), p.id)}
}

// ask asks the peer where it listens until it answers. An earlier answer may be that of a process
// that has ended.
func (p *peer) ask(ctx context.Context) ([]string, error) {
	select {
	case <-p.offers:
	default:
	}
	for delay := minAsk; ; delay = min(2*delay, maxAsk) {
		if err := p.publish(packetAsk, 0, 0, nil); err != nil {
			p.node.stats.connErrors.Add(1)
		}
		select {
		case o := <-p.offers:
			return o.Addresses, nil
		case <-time.After(delay):
			p.node.stats.asked.Add(1)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// relayConn copies between a connection inside this process, whose other end belongs to gRPC, and
// packets of NATS. A lost packet ends the connection.
type relayConn struct {
	peer  *peer
	id    uint64
	inner net.Conn
	queue chan []byte // packets that were received and not read; nil: there are no more
	next  uint64      // number of the packet that must arrive next; of the goroutine that receives
	done  chan struct{}
	once  sync.Once
}

// relaySlot holds the current relayed connection of a peer.
type relaySlot struct {
	mu      sync.Mutex
	current *relayConn // nil: none
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

// startRelay starts a relayed connection, in place of an earlier one. The other end of inner belongs
// to gRPC.
func (p *peer) startRelay(id uint64, inner net.Conn) *relayConn {
	r := &relayConn{peer: p, id: id, inner: inner, queue: make(chan []byte, relayQueue), done: make(chan struct{})}
	p.relay.mu.Lock()
	earlier := p.relay.current
	p.relay.current = r
	p.relay.mu.Unlock()
	earlier.close()
	p.node.background.Go(r.write)
	p.node.background.Go(r.read)
	return r
}

// openRelay opens a relayed connection to the peer.
func (p *peer) openRelay(context.Context) (net.Conn, error) {
	outer, inner := net.Pipe()
	p.startRelay(newIncarnation(), inner)
	return outer, nil
}

// receiveRelayed handles a packet of a relayed connection.
func (p *peer) receiveRelayed(id, seq uint64, payload []byte) {
	r := p.relay.get(id)
	switch {
	case r != nil:
	case p.id < p.node.opt.Self: // of an earlier connection
		return
	case seq != 0: // of an earlier process
		_ = p.publish(packetEnd, id, 0, nil)
		return
	default:
		inner, err := p.node.relayed.DialContext(p.node.open)
		if err != nil {
			return // the node closes
		}
		r = p.startRelay(id, inner)
	}
	if seq != r.next {
		p.node.log.Debug("NATS lost a part of a relayed connection", zap.Int("peer", p.id))
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

// read copies what gRPC writes to packets.
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

// finish closes the connection after what was received is read, since the other end has closed it.
// A nil connection is closed.
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
