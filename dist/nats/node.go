package nats

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	client "github.com/nats-io/nats.go"
	"go.uber.org/zap"
	"google.golang.org/grpc/test/bufconn"

	"fspda/dist"
)

// Options configure a [Node].
type Options struct {
	Run      string  // name of the run: letters, digits, - and _
	Self     int     // rank of the agent
	Agents   int     // number of agents
	Identity []Field // what all nodes must agree on, the most telling property first

	Pool  *dist.Pool       // of the device on which messages are created and used
	Dim   int              // length of the model's vectors
	Codec dist.Codec       // of the run's messages; nil: plain values
	Wire  dist.ValueFormat // of plain values, which senders have rounded to it; "": float32

	Server Server // embedded in this process
	URL    string // of an existing cluster, instead of Server
	TLS    Credentials
	Direct DirectServer // where other nodes connect

	// Durable says that the agent writes checkpoints and calls Stable. The other agents keep the
	// messages that it has received since the last one.
	Durable bool
	// LogBytes is the size of the messages kept for all peers above which the node requests
	// checkpoints of the peers; 0: 16 MiB, or four vectors if that is more.
	LogBytes    int
	Compression Compression // of messages, lossless
	Log         *zap.Logger

	// changed by tests
	intervals
	chunk int
	wrap  func(net.Conn) net.Conn // connections to other agents
}

// intervals are the default ones if they are 0.
type intervals struct{ heartbeat, maxRedial, directRetry time.Duration }

const minLogBytes = 16 << 20

var validRunName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// Node connects one agent to the network. It is the [dist.Transport] of this agent: it sends in the
// agent's name and receives the messages for it. Its methods are safe for concurrent use.
type Node struct {
	opt         Options
	incarnation uint64 // drawn by this process
	bodyCodec   bodyCodec
	peers       []*peer // by rank; nil for this agent
	log         *zap.Logger

	server             *embeddedServer // nil in an existing cluster
	direct             directListeners
	relayed            *bufconn.Listener
	conn               *client.Conn
	checkpointRequests chan struct{} // a peer requests a checkpoint
	stats              stats
	bodies             bodyPool
	wireBytesSent      atomic.Uint64 // bytes of the frames of all messages, each counted once
	logBytes           atomic.Int64  // of the logs of all peers

	failed     chan struct{}
	failOnce   sync.Once
	failure    error
	open       context.Context // canceled when the node closes
	close      context.CancelFunc
	background sync.WaitGroup
}

var _ dist.Transport = (*Node)(nil)

// Open connects to the network. The handshakes begin with Start.
func Open(o Options) (*Node, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	n := &Node{opt: o, incarnation: newIncarnation(), log: o.Log, relayed: bufconn.Listen(maxRelayPacket),
		bodyCodec:          bodyCodec{pool: o.Pool, codec: o.Codec, wire: o.Wire, dim: o.Dim},
		checkpointRequests: make(chan struct{}, 1), failed: make(chan struct{}), peers: make([]*peer, o.Agents)}
	n.open, n.close = context.WithCancel(context.Background())
	n.bodyCodec.alloc, n.bodyCodec.contiguous = n.bodies.get, o.Compression.enabled()
	for i := range n.peers {
		if i != o.Self {
			n.peers[i] = newPeer(n, i)
		}
	}
	err := n.connect()
	if err == nil && o.Direct.Listen != "" {
		err = n.listenDirect()
	}
	if err != nil {
		n.Close()
		return nil, err
	}
	return n, nil
}

// CheckRun returns what is wrong with the name of a run.
func CheckRun(name string) error {
	if !validRunName.MatchString(name) {
		return fmt.Errorf("nats: the run is named %q: use letters, digits, - and _, at most 64", clip(name))
	}
	return nil
}

func (o *Options) check() error {
	if o.Self < 0 || o.Self >= o.Agents || o.Pool == nil || o.Dim < 1 {
		panic(fmt.Sprintf("nats: Open for agent %d of %d with vectors of length %d: it needs a pool, a rank in range "+
			"and a positive length", o.Self, o.Agents, o.Dim))
	}
	if err := CheckRun(o.Run); err != nil {
		return err
	}
	if most := uint64(1) << 32; uint64((&bodyCodec{dim: o.Dim}).limit()) >= most {
		return fmt.Errorf("nats: a model of %d parameters makes messages above 4 GB, the limit of the protocol", o.Dim)
	}
	o.heartbeat = cmp.Or(o.heartbeat, heartbeatInterval)
	o.chunk = cmp.Or(o.chunk, maxChunk)
	o.maxRedial, o.directRetry = cmp.Or(o.maxRedial, maxRedial), cmp.Or(o.directRetry, directRetry)
	o.Server.check = cmp.Or(o.Server.check, minRouteCheck)
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

// connect connects to the server.
func (n *Node) connect() (err error) {
	url, token := n.opt.URL, rand.Text()
	options := []client.Option{client.Name(fmt.Sprintf("fspda %s agent %d", n.opt.Run, n.opt.Self)), client.NoEcho(),
		client.MaxReconnects(-1),
		client.ReconnectWait(100 * time.Millisecond), client.ReconnectBufSize(8 << 20), client.ErrorHandler(
			n.onConnError),
		client.DisconnectErrHandler(func(_ *client.Conn, err error) {
			if err != nil {
				n.log.Warn("lost the connection to the NATS server; reconnecting", zap.Error(err))
			}
		})}
	if url == "" {
		s, err := startServer(n.opt, token)
		if err != nil {
			return err
		}
		n.server = &embeddedServer{token: token, listen: s.ClusterAddr().String(), now: s}
		options = append(options, client.InProcessServer(n.server), client.Token(token))
	} else {
		options = append(options, n.opt.TLS.client(url)...)
	}
	n.conn, err = client.Connect(url, options...)
	if n.server == nil && isUnreachable(err) {
		n.log.Warn("the NATS server cannot be reached; waiting for it", zap.String("server", url), zap.Error(err))
		n.conn, err = client.Connect(url, append(options, client.RetryOnFailedConnect(true))...)
	}
	if err != nil {
		return fmt.Errorf("nats: cannot connect to the server %s: %w: are its address and the credentials right?",
			cmp.Or(url, "of this process"), err)
	}
	return nil
}

// isUnreachable reports whether no server listens, or the network fails.
func isUnreachable(err error) bool {
	var network *net.OpError
	return errors.Is(err, client.ErrNoServers) || errors.As(err, &network)
}

// listen subscribes to the packets for this agent.
func (n *Node) listen() error {
	sub, err := n.conn.Subscribe(n.subject(n.opt.Self, "*"), n.receive)
	if err != nil {
		return fmt.Errorf("nats: cannot subscribe: %w", err)
	}
	if err := sub.SetPendingLimits(-1, 256<<20); err != nil {
		return err
	}
	if n.conn.IsConnected() {
		return n.conn.FlushTimeout(10 * time.Second)
	}
	return nil // as soon as the server can be reached
}

// subject returns the subject on which agent from publishes to agent to.
func (n *Node) subject(to int, from string) string {
	return "fspda." + n.opt.Run + "." + strconv.Itoa(to) + "." + from
}

// onConnError logs an error of the client library, such as packets dropped because this process was
// too slow. They end a relayed connection.
func (n *Node) onConnError(_ *client.Conn, _ *client.Subscription, err error) {
	n.stats.connErrors.Add(1)
	n.log.Debug("NATS connection error", zap.Error(err))
}

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
	if err := n.listen(); err != nil { // after the streams are restored: the first frames already acknowledge
		return err
	}
	n.serve(n.relayed, relayWindow)
	for _, l := range n.direct.listeners {
		n.serve(l, directWindow)
	}
	n.background.Go(n.watchRoutes)
	for _, p := range n.others() {
		if p.id < n.opt.Self {
			n.background.Go(func() { p.keepConnected(n.open) })
		}
	}
	return nil
}

// others returns the peers.
func (n *Node) others() []*peer {
	out := make([]*peer, 0, len(n.peers))
	for _, p := range n.peers {
		if p != nil {
			out = append(out, p)
		}
	}
	return out
}

// Ready waits until all other agents have connected.
func (n *Node) Ready(ctx context.Context) error {
	for _, p := range n.others() {
		p.mu.Lock()
		for p.link == nil {
			if err := p.wait(ctx); err != nil {
				p.mu.Unlock()
				return fmt.Errorf("nats: agent %d cannot connect to agent %d: %w", n.opt.Self, p.id, err)
			}
		}
		p.mu.Unlock()
	}
	return nil
}

// ConnectedPeers returns the number of agents that are connected.
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
		panic(fmt.Sprintf("nats: the node of agent %d cannot send for agent %d", n.opt.Self, m.From))
	}
	body, raw, memory, err := n.body(m)
	if err != nil {
		return err
	}
	if err := n.peer(m.To).send(ctx, exchanges, sentMessage{t: uint64(m.T), body: body, rawSize: raw,
		memory: memory}, 0); err != nil {
		return fmt.Errorf("nats: sending iteration %d from agent %d to agent %d: %w", m.T, m.From, m.To, err)
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

// Recv implements [dist.Transport]. The node must be that of agent self.
func (n *Node) Recv(ctx context.Context, self, from, t int) (dist.Message, error) {
	if self != n.opt.Self {
		panic(fmt.Sprintf("nats: the node of agent %d cannot receive for agent %d", n.opt.Self, self))
	}
	msg, err := n.peer(from).receive(ctx, exchanges, 0)
	if err != nil {
		return dist.Message{}, fmt.Errorf("nats: agent %d awaiting iteration %d from agent %d: %w", self, t, from, err)
	}
	m := dist.Message{T: int(msg.t), From: from, To: self, Codec: n.opt.Codec}
	done := func() { n.bodies.put(msg.body) }
	body, err := decompress(msg)
	if err == nil {
		m.Values, m.Arrives, err = n.bodyCodec.decode(body, done)
	}
	if err != nil {
		return dist.Message{}, fmt.Errorf("nats: iteration %d from agent %d cannot be decoded: %w", t, from, err)
	}
	if err := dist.CheckIteration(m, t); err != nil {
		return dist.Message{}, err
	}
	return m, nil
}

// Report sends a record to another agent, in a stream separate from the algorithm's messages. It is
// kept until it is stable, like them.
func (n *Node) Report(ctx context.Context, to, t int, record []byte) error {
	if len(record) > n.bodyCodec.limit() {
		return fmt.Errorf("nats: a report of %d bytes; at most %d can be sent", len(record), n.bodyCodec.limit())
	}
	return n.peer(to).send(ctx, reports, sentMessage{t: uint64(t), body: segments{n.opt.Compression.compress(record)},
		rawSize: len(record)}, 0)
}

// NextReport waits for the next record of another agent.
func (n *Node) NextReport(ctx context.Context, from int) (t int, record []byte, err error) {
	for {
		msg, err := n.peer(from).receive(ctx, reports, 0)
		if err != nil {
			return 0, nil, err
		}
		if msg.total == 0 { // it stands for one that an earlier process sent
			continue
		}
		record, err = decompress(msg)
		return int(msg.t), record, err
	}
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
// counted once.
func (n *Node) WireBytes() uint64 { return n.wireBytesSent.Load() }

func (n *Node) peer(i int) *peer {
	if i < 0 || i >= len(n.peers) || n.peers[i] == nil {
		panic(fmt.Sprintf("nats: no stream leads from agent %d to agent %d of %d", n.opt.Self, i, n.opt.Agents))
	}
	return n.peers[i]
}

// wireBytes returns the size of the frames of a body of size bytes.
func (n *Node) wireBytes(size int) uint64 {
	return uint64(size + headerSize*max(1, (size+n.opt.chunk-1)/n.opt.chunk))
}

// logIsFull reports whether the logs are long and that of a peer is one of the longest: a
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
var ErrClosed = errors.New("nats: the node is closed")

// Close disconnects after everything that was sent has left the process.
func (n *Node) Close() {
	n.fail(ErrClosed)
	if n.open.Err() != nil {
		return
	}
	n.close()
	n.background.Wait()
	for _, l := range n.direct.listeners {
		_ = l.Close() // its server may have closed it
	}
	if n.conn != nil {
		_ = n.conn.FlushTimeout(time.Second) // what does not leave now is lost, and sent again when asked for
		n.conn.Close()
	}
	if n.server != nil {
		stop(n.server.running())
	}
}
