package nats

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	client "github.com/nats-io/nats.go"
	"go.uber.org/zap"

	"fspda/dist/discover"
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
	packetAsk   = iota + 1 // Asks where the receiver listens.
	packetOffer            // Answers with an offer as JSON.
	packetData             // Carries bytes of a relayed connection. The first packet opens it.
	packetEnd              // Says that the relayed connection has ended.
)

const (
	maxRelayPacket = 64 << 10 // The maximal number of bytes of a relayed connection in one packet.
	relayQueue     = 512      // The maximal number of packets of a connection that wait to be read.
	minAsk         = 50 * time.Millisecond
	maxAsk         = time.Second
)

// peer is the state of a Discovery about another agent.
type peer struct {
	discovery *Discovery
	id        int
	offers    chan offer // The latest answer of the peer to an ask. The capacity is 1.
	relay     relaySlot
	answered  time.Time // The time of the latest offer. The goroutine that receives uses it.
	foreign   time.Time // The time of the first packet of another version. The same goroutine uses it.
}

// offer says where a node listens.
type offer struct {
	Addresses []string `json:"addresses"` // HOST:PORT, in the order in which to dial them. None: relayed only.
	// Server lists where the agent's NATS server accepts connections of other servers.
	Server []string `json:"server,omitempty"`
}

// maxAddressLen bounds the length of an address in an offer.
const maxAddressLen = 300

func encodeOffer(o offer) []byte {
	text, err := json.Marshal(o)
	if err != nil {
		panic("nats: cannot encode an offer: " + err.Error()) // cannot happen: its fields are plain
	}
	return text
}

func decodeOffer(b []byte) (o offer, err error) {
	if err := json.Unmarshal(b, &o); err != nil || max(len(o.Addresses), len(o.Server)) > discover.MaxAddresses {
		return o, fmt.Errorf("nats: an offer of %d addresses was refused", max(len(o.Addresses), len(o.Server)))
	}
	for _, a := range slices.Concat(o.Addresses, o.Server) {
		if len(a) > maxAddressLen {
			return o, fmt.Errorf("nats: an offer with an address of %d bytes was refused", len(a))
		}
		if _, _, err := discover.HostPort(a); err != nil {
			return o, fmt.Errorf("nats: an offer was refused: %w", err)
		}
	}
	return o, nil
}

// subject returns the subject on which agent from publishes to agent to.
func subject(run string, to int, from string) string {
	return "fspda." + run + "." + strconv.Itoa(to) + "." + from
}

// Permissions returns the subjects on which an agent publishes and to which it subscribes: the
// permissions that an existing cluster should grant to the user of the agent's certificate.
func Permissions(run string, rank int) (publish, subscribe string) {
	return fmt.Sprintf("fspda.%s.*.%d", run, rank), subject(run, rank, "*")
}

func (p *peer) publish(kind byte, conn, seq uint64, payload []byte) error {
	d := p.discovery
	b := make([]byte, 0, packetHeader+len(payload))
	b = append(append(b, magic...), discover.Version, kind, 0, 0)
	b = binary.LittleEndian.AppendUint64(b, conn)
	b = binary.LittleEndian.AppendUint64(b, seq)
	return d.conn.Publish(subject(d.opt.Run, p.id, strconv.Itoa(d.opt.Self)), append(b, payload...))
}

// versionGrace is the time for which packets of another version may arrive before an agent ends
// that has certificates: one packet may be forged.
const versionGrace = time.Minute

// meetVersion handles a packet of another version of the protocol, about which err is. An agent to
// which nobody is connected ends. An ask is answered, so that the other agent learns of it, too.
func (d *Discovery) meetVersion(p *peer, kind byte, err error) {
	now := time.Now()
	if p.foreign.IsZero() {
		p.foreign = now
	}
	if d.agent.Connected() == 0 && (d.opt.TLS == nil || now.Sub(p.foreign) > d.versionGrace) {
		d.agent.Fail(&VersionError{err})
	}
	if kind == packetAsk && now.Sub(p.answered) > minAsk {
		p.answered = now
		_ = p.publish(packetOffer, 0, 0, encodeOffer(offer{})) // It asks again.
	}
}

// VersionError reports an agent that uses another version of the protocol.
type VersionError struct{ error }

// ExitCode returns 2, the exit status for bad input.
func (*VersionError) ExitCode() int { return 2 }

// receive handles a NATS message.
func (d *Discovery) receive(m *client.Msg) {
	from, err := strconv.Atoi(m.Subject[strings.LastIndexByte(m.Subject, '.')+1:])
	if err == nil && (from < 0 || from >= len(d.peers) || d.peers[from] == nil || len(m.Data) < packetHeader ||
		string(m.Data[:4]) != magic) {
		err = fmt.Errorf("nats: %d bytes are no packet of this run", len(m.Data))
	}
	if err == nil && m.Data[4] != discover.Version {
		err = fmt.Errorf("nats: agent %d uses version %d of the protocol, this one %d: use the same program on all "+
			"machines", from, m.Data[4], discover.Version)
		d.meetVersion(d.peers[from], m.Data[5], err)
	}
	if err == nil {
		le := binary.LittleEndian
		err = d.peers[from].receivePacket(m.Data[5], le.Uint64(m.Data[8:]), le.Uint64(m.Data[16:]),
			m.Data[packetHeader:])
	}
	if err != nil {
		d.drop(m.Subject, err)
	}
}

// drop counts something invalid that was received, and logs the first one.
func (d *Discovery) drop(from string, err error) {
	if d.dropped.Add(1) == 1 {
		d.log.Warn("dropped invalid bytes; further ones are only counted",
			zap.String("from", from[:min(80, len(from))]), zap.Error(err))
	}
}

func (p *peer) receivePacket(kind byte, conn, seq uint64, payload []byte) error {
	d := p.discovery
	switch {
	case kind == packetAsk && p.id > d.opt.Self:
		if d.open.Err() != nil || time.Since(p.answered) < minAsk/2 { // The agent closes, or is asked too often.
			return nil
		}
		p.answered = time.Now()
		return p.publish(packetOffer, 0, 0, encodeOffer(d.offer()))
	case kind == packetOffer && p.id < d.opt.Self:
		o, err := decodeOffer(payload)
		if err != nil {
			return err
		}
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
	return fmt.Errorf("nats: a packet of kind %d with %d bytes from agent %d was refused", kind, len(payload), p.id)
}

// ask asks the peer where it listens until it answers. An earlier answer is not used, since the
// process that gave it may have ended.
func (p *peer) ask(ctx context.Context) (offer, error) {
	select {
	case <-p.offers:
	default:
	}
	for delay := minAsk; ; delay = min(2*delay, maxAsk) {
		if err := p.publish(packetAsk, 0, 0, nil); err != nil {
			p.discovery.trouble.Add(1)
		}
		select {
		case o := <-p.offers:
			return o, nil
		case <-time.After(delay):
		case <-ctx.Done():
			return offer{}, ctx.Err()
		}
	}
}
