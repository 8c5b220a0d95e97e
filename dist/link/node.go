package link

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc/test/bufconn"

	"fspda/dist"
	"fspda/dist/discover"
)

// Options configure a [Node].
type Options struct {
	Run      string  // The name of the run. See discover.CheckRun.
	Self     int     // The rank of the agent.
	Agents   int     // The number of agents.
	Identity []Field // The properties on which all nodes must agree, the most telling one first.

	Pool  *dist.Pool // The buffers of the device on which messages are created and used.
	Dim   int        // The length of the model's vectors.
	Codec dist.Codec // The codec of the run's messages; nil: plain values.
	// Wire is the format of plain values, to which senders have rounded them; "": float32.
	Wire dist.ValueFormat

	Links

	// Discovery finds the other agents. The node closes it.
	Discovery discover.Discovery
	TLS       Credentials
	// Listen is the address, HOST:PORT, at which nodes of higher ranks connect. Port 0 is any free
	// one. Without it, connections to this node are relayed.
	Listen string
	// Advertise is the host under which other nodes reach Listen. Without it they are told all
	// addresses of this machine that fit Listen.
	Advertise string

	// Durable says that the agent writes checkpoints and calls Stable. The other agents keep the
	// messages that it has received since the last one.
	Durable bool
	// LogBytes is the size of the messages kept for all peers above which the node requests
	// checkpoints of the peers; 0: 16 MiB, or four vectors if that is more.
	LogBytes    int
	Compression Compression // The lossless compression of messages.
	Log         *zap.Logger

	// Tests change these.
	intervals
	chunk int
	wrap  func(net.Conn) net.Conn // Wraps the connections to other agents.
}

// Links say which links a node has, and when they are heard.
type Links struct {
	// Near are the agents to which there are links from the start; nil: all. To the others a link is
	// made when a message is sent to them or awaited from them. Agent 0 is near all.
	Near []int
	// Tree says that the Discovery relays along a tree of the agents' own servers. Links over which only
	// reports go to agent 0 are relayed then.
	Tree bool
	// Pause is the time between two heartbeats of a link that no message uses; 0: five seconds.
	Pause time.Duration
	// Life is the number of agents that the slot of this one has had before. Streams of different ones
	// are different.
	Life int
}

// intervals are the default ones if they are 0.
type intervals struct{ heartbeat, maxRedial, directRetry, warnAfter time.Duration }

const minLogBytes = 16 << 20

// Node connects one agent to the network. It is the [dist.Transport] of this agent: it sends in the
// agent's name and receives the messages for it. Its methods are safe for concurrent use.
type Node struct {
	opt         Options
	incarnation uint64 // The number that this process has drawn.
	bodyCodec   bodyCodec
	peers       []*peer // The other agents by rank; nil for this agent.
	log         *zap.Logger

	direct             []net.Listener // The listener for direct connections, if there is one.
	relayed            *bufconn.Listener
	checkpointRequests chan struct{} // Receives a value when a peer requests a checkpoint.
	stats              stats
	bodies             bodyPool
	// wireBytesSent is the bytes of the frames of all messages that are part of the run.
	wireBytesSent atomic.Uint64
	logBytes      atomic.Int64 // The bytes in the logs of all peers.
	position      ownPosition
	news          news

	failed     chan struct{}
	failOnce   sync.Once
	failure    error
	open       context.Context // Ends when the node closes.
	close      context.CancelFunc
	background sync.WaitGroup
}

var _ dist.Checked = (*Node)(nil)

// Open listens for connections. The handshakes begin with Start. Close closes the Discovery of the
// options, and so does an Open that fails.
func Open(o Options) (*Node, error) {
	if err := o.check(); err != nil {
		o.Discovery.Close()
		return nil, err
	}
	n := &Node{opt: o, incarnation: newIncarnation(), log: o.Log, relayed: bufconn.Listen(relayBuffer),
		bodyCodec:          bodyCodec{pool: o.Pool, codec: o.Codec, wire: o.Wire, dim: o.Dim},
		checkpointRequests: make(chan struct{}, 1), failed: make(chan struct{}), peers: make([]*peer, o.Agents)}
	n.open, n.close = context.WithCancel(context.Background())
	if d, ok := o.Codec.(dist.Divisible); ok {
		n.bodyCodec.pieces = d.Divide(o.Agents)
	}
	n.bodyCodec.alloc, n.bodyCodec.contiguous = n.bodies.get, o.Compression.enabled()
	for i := range n.peers {
		if i != o.Self {
			n.peers[i] = newPeer(n, i)
			n.peers[i].wanted = o.near(i)
		}
	}
	if o.Listen != "" {
		if err := n.listenDirect(); err != nil {
			n.Close()
			return nil, err
		}
	}
	return n, nil
}

func (o *Options) check() error {
	if o.Self < 0 || o.Self >= o.Agents || o.Pool == nil || o.Dim < 1 || o.Discovery == nil {
		panic(fmt.Sprintf("link: Open for agent %d of %d with vectors of length %d: it needs a pool, a Discovery, a "+
			"rank in range and a positive length", o.Self, o.Agents, o.Dim))
	}
	if err := discover.CheckRun(o.Run); err != nil {
		return err
	}
	if most := uint64(1) << 32; uint64((&bodyCodec{dim: o.Dim}).limit()) >= most {
		return fmt.Errorf("link: a model of %d parameters makes messages above 4 GB, the limit of the protocol", o.Dim)
	}
	o.heartbeat = cmp.Or(o.heartbeat, heartbeatInterval)
	o.Pause = max(o.heartbeat, cmp.Or(o.Pause, pauseInterval))
	o.chunk = cmp.Or(o.chunk, maxChunk)
	o.maxRedial, o.directRetry = cmp.Or(o.maxRedial, maxRedial), cmp.Or(o.directRetry, directRetry)
	o.warnAfter = cmp.Or(o.warnAfter, warnAfter)
	o.LogBytes = cmp.Or(o.LogBytes, max(minLogBytes, 4*4*o.Dim))
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	return nil
}

// newIncarnation draws a number that, with overwhelming probability, no earlier process has drawn.
func newIncarnation() uint64 {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint64(b[:]) | 1
}

// maxChunk is the maximal size of a fragment.
const maxChunk = 512 << 10

// relayBuffer is the size in bytes of the buffer between a relay and the server of this node.
const relayBuffer = 64 << 10

// Start begins the handshakes. state is the state that Save returned at the checkpoint from which
// the agent continues, nil at iteration 0. The node does not deliver reports before number reported
// again.
func (n *Node) Start(state []byte, reported int) error {
	if state != nil {
		if err := n.restore(state); err != nil {
			return err
		}
	}
	for _, p := range n.others() {
		p.mu.Lock()
		p.in[reports].next, p.in[reports].written = uint64(reported), uint64(reported)
		p.out[reports].restored = p.out[reports].next
		p.mu.Unlock()
	}
	// The streams are restored before, since the first frames already acknowledge.
	err := n.opt.Discovery.Start(n.open, discover.Agent{Addresses: n.addresses,
		Connect: n.relayed.DialContext, Connected: n.ConnectedPeers, Fail: n.fail})
	if err != nil {
		return err
	}
	n.serve(n.relayed, relayWindow)
	for _, l := range n.direct {
		n.serve(l, directWindow)
	}
	for _, p := range n.others() {
		p.mu.Lock()
		p.started = true
		p.wanted = p.wanted || p.out[exchanges].next > 0 || p.in[exchanges].next > 0
		if p.wanted {
			p.dialLoop()
		}
		p.mu.Unlock()
	}
	return nil
}

// near reports whether there is a link to an agent from the start.
func (o *Options) near(agent int) bool {
	return o.Near == nil || agent == hub || o.Self == hub || slices.Contains(o.Near, agent)
}

func (n *Node) others() []*peer {
	out := make([]*peer, 0, len(n.peers))
	for _, p := range n.peers {
		if p != nil {
			out = append(out, p)
		}
	}
	return out
}

// Ready waits until all agents have connected to which there is to be a link.
func (n *Node) Ready(ctx context.Context) error {
	for _, p := range n.others() {
		p.mu.Lock()
		for p.wanted && p.link == nil {
			if err := p.wait(ctx); err != nil {
				p.mu.Unlock()
				return fmt.Errorf("link: agent %d cannot connect to agent %d: %w", n.opt.Self, p.id, err)
			}
		}
		p.mu.Unlock()
	}
	return nil
}

func (n *Node) ConnectedPeers() int {
	present := 0
	for _, p := range n.others() {
		p.mu.Lock()
		if p.link != nil {
			present++
		}
		p.mu.Unlock()
	}
	return present
}

// Send implements [dist.Transport]. The message must come from the node's own agent.
func (n *Node) Send(ctx context.Context, m dist.Message) error {
	if m.From != n.opt.Self {
		panic(fmt.Sprintf("link: the node of agent %d cannot send for agent %d", n.opt.Self, m.From))
	}
	body, raw, memory, err := n.body(m)
	if err != nil {
		return err
	}
	if err := n.peer(m.To).send(ctx, exchanges, sentMessage{t: uint64(m.T), body: body, rawSize: raw,
		memory: memory}, 0); err != nil {
		return fmt.Errorf("link: sending iteration %d from agent %d to agent %d: %w", m.T, m.From, m.To, err)
	}
	return nil
}

// body encodes a message and returns its uncompressed size. The message is released at once, or
// when memory is.
func (n *Node) body(m dist.Message) (body segments, raw int, memory *bodyRef, err error) {
	if body, ok := n.bodyCodec.encodeInPlace(m); ok {
		return body, body.size(), newBodyRef(m.Release), nil
	}
	defer m.Release()
	whole, err := n.bodyCodec.encode(m)
	if err != nil {
		return nil, 0, nil, err
	}
	out := n.opt.Compression.compress(whole)
	if len(out) >= minPooledBody {
		memory = newBodyRef(func() { n.bodies.put(out) })
	}
	return segments{out}, len(whole), memory, nil
}

// Recv implements [dist.Transport]. The node must belong to agent self.
func (n *Node) Recv(ctx context.Context, self, from, t int) (dist.Message, error) {
	p := n.checkReceiver(self, from)
	msg, err := p.receive(ctx, exchanges, 0)
	if err != nil {
		return dist.Message{}, fmt.Errorf("link: agent %d awaiting iteration %d from agent %d: %w", self, t, from, err)
	}
	m, err := n.message(msg, from, t, false, true)
	if err != nil {
		return dist.Message{}, fmt.Errorf("link: iteration %d from agent %d cannot be used: %w", t, from, err)
	}
	return m, nil
}

// Report sends a record to another agent, in a stream separate from the algorithm's messages. It is
// kept until it is stable, like them.
func (n *Node) Report(ctx context.Context, to, t int, record []byte) error {
	if len(record) > n.bodyCodec.limit() {
		return fmt.Errorf("link: a report of %d bytes; at most %d can be sent", len(record), n.bodyCodec.limit())
	}
	return n.peer(to).send(ctx, reports, sentMessage{t: uint64(t), body: segments{n.opt.Compression.compress(record)},
		rawSize: len(record)}, 0)
}

// AwaitReports waits until another agent has consumed all reports.
func (n *Node) AwaitReports(ctx context.Context, by int) error {
	p := n.peer(by)
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.out[reports].consumed < p.out[reports].next {
		if err := p.wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// CheckpointRequested receives a value when a peer keeps many messages for this agent. A checkpoint
// would let the peer delete them.
func (n *Node) CheckpointRequested() <-chan struct{} { return n.checkpointRequests }

// WireBytes returns the size of the agent's messages on the wire, with headers, each message
// counted once. Reports, which tell of the run, are not counted.
func (n *Node) WireBytes() uint64 { return n.wireBytesSent.Load() }

func (n *Node) peer(i int) *peer {
	if i < 0 || i >= len(n.peers) || n.peers[i] == nil {
		panic(fmt.Sprintf("link: no stream leads from agent %d to agent %d of %d", n.opt.Self, i, n.opt.Agents))
	}
	return n.peers[i]
}

// wireBytes returns the size of the frames of a body of size bytes.
func (n *Node) wireBytes(size int) uint64 {
	return uint64(size + headerSize*max(1, (size+n.opt.chunk-1)/n.opt.chunk))
}

// logIsFull reports whether the logs are long and the log of this peer is one of the longest. A
// checkpoint of the peer would free most of it. The caller holds the lock of the peer.
func (n *Node) logIsFull(p *peer) bool {
	own := p.out[exchanges].bytes
	old := n.logBytes.Add(int64(own - p.counted))
	p.counted = own
	return old > int64(n.opt.LogBytes) && own > n.opt.LogBytes/(2*len(n.peers))
}

// drop counts something invalid that was received, and logs the first one.
func (n *Node) drop(from string, err error) {
	if n.stats.dropped.Add(1) == 1 {
		n.log.Warn("dropped invalid bytes; further ones are only counted", zap.String("from", from), zap.Error(err))
	}
}

// fail ends all waits with an error. Only the first call has an effect.
func (n *Node) fail(err error) {
	n.failOnce.Do(func() {
		n.failure = err
		close(n.failed)
	})
}

// ErrClosed is the error of calls that wait when the node is closed.
var ErrClosed = errors.New("link: the node is closed")

// Close disconnects after everything that was sent has left the process.
func (n *Node) Close() {
	n.fail(ErrClosed)
	if n.open.Err() != nil {
		return
	}
	n.close()
	for _, p := range n.others() {
		p.mu.Lock()
		p.started = false // No goroutine begins to dial from here on.
		p.mu.Unlock()
	}
	n.background.Wait()
	for _, l := range n.direct {
		_ = l.Close() // its server may have closed it
	}
	n.opt.Discovery.Close() // Relayed bytes that have not left are lost. They are sent again on demand.
}
