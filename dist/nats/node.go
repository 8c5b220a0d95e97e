package nats

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	client "github.com/nats-io/nats.go"
	"go.uber.org/zap"

	"fspda/dist"
)

// Options say who a node is and whom it meets.
type Options struct {
	Run      string  // its name: letters, digits, - and _
	Self     int     // the agent
	Agents   int     // how many there are
	Identity []Field // what all members must agree on, the most telling first

	Pool  *dist.Pool       // of the device on which messages are made and used
	Dim   int              // length of the vectors that messages are about
	Codec dist.Codec       // of the run, where messages have one; nil: plain values
	Wire  dist.ValueFormat // how plain values travel: senders have rounded them; "": float32

	Server Server // the one inside this process
	URL    string // of a cluster that is there already, instead
	TLS    Credentials
	Direct DirectServer // for large messages

	// Durable says that the agent keeps checkpoints: it calls Stable, and others keep for it what
	// it has heard since.
	Durable bool
	// LogBytes is from which size on of the messages that are kept for one peer it is asked for a
	// checkpoint; 0 is 64 MB.
	LogBytes    int
	Compression Compression   // of messages, without loss
	Faults      FaultInjector // nil: as the network is
	Log         *zap.Logger

	fault    func(f *frame) (copies int) // a bad network, for tests; nil: a good one
	firstAsk time.Duration               // shorter, for tests of one
	chunk    int                         // smaller, for tests of messages in many pieces
}

const defaultLogBytes = 64 << 20

var runName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// Node is one agent's place in the network. Its methods are safe for concurrent use. It is the
// [dist.Transport] of its agent: it sends in that agent's name and receives what is meant for it.
type Node struct {
	opt   Options
	run   uint64 // hash of its name
	life  uint64 // drawn by this process
	chunk int
	// signet seals what is said over NATS; nil without certificates.
	signet *signet
	codec  contents
	peers  []*peer // by agent; nil at this one's own place
	log    *zap.Logger

	server  *embedded     // nil with a cluster of others
	door    *directServer // nil: all goes over NATS
	conn    *client.Conn
	wanted  chan struct{} // somebody asks for a checkpoint
	stats   stats
	bodies  bodies
	written atomic.Uint64 // bytes of the frames of all messages, each counted once

	dead    chan struct{}
	once    sync.Once
	failure error
	quit    chan struct{}
	aside   sync.WaitGroup
}

var _ dist.Transport = (*Node)(nil)

// Open joins the network. Nobody is greeted before Start.
func Open(o Options) (*Node, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	n := &Node{opt: o, run: hashName(o.Run), life: newLife(), log: o.Log, codec: contents{pool: o.Pool, codec: o.Codec,
		wire: o.Wire, dim: o.Dim},
		wanted: make(chan struct{}, 1), dead: make(chan struct{}), quit: make(chan struct{}), peers: make([]*peer,
			o.Agents)}
	n.codec.lend, n.codec.whole = n.bodies.get, o.Compression.packs()
	for i := range n.peers {
		if i != o.Self {
			n.peers[i] = newPeer(n, i)
		}
	}
	var err error
	if n.signet, err = newSignet(o, n.life); err != nil {
		return nil, err
	}
	if err := n.connect(); err != nil {
		n.Close()
		return nil, err
	}
	if o.Direct.Listen != "" {
		if err := n.openDoor(); err != nil {
			n.Close()
			return nil, err
		}
	}
	return n, nil
}

func (o *Options) check() error {
	if o.Self < 0 || o.Self >= o.Agents || o.Pool == nil || o.Dim < 1 {
		panic(fmt.Sprintf("nats: Open for agent %d of %d on vectors of %d: it takes a pool, a rank in range and a length", o.Self, o.Agents, o.Dim))
	}
	if !runName.MatchString(o.Run) {
		return fmt.Errorf("nats: the run is named %q: use letters, digits, - and _, at most 64", clip(o.Run))
	}
	if most := uint64(1) << 32; uint64((&contents{dim: o.Dim}).limit()) >= most {
		return fmt.Errorf("nats: a model of %d parameters makes messages above 4 GB, which the protocol cannot carry",
			o.Dim)
	}
	o.firstAsk = cmp.Or(o.firstAsk, firstAsk)
	o.LogBytes = cmp.Or(o.LogBytes, defaultLogBytes)
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	return nil
}

func hashName(run string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(run))
	return h.Sum64()
}

// newLife draws a number that no earlier process had.
func newLife() uint64 {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint64(b[:]) | 1
}

// maxChunk is the most that one frame carries of a body.
const maxChunk = 512 << 10

// connect makes the connection to the server.
func (n *Node) connect() (err error) {
	url := n.opt.URL
	options := []client.Option{client.Name(fmt.Sprintf("fspda %s agent %d", n.opt.Run, n.opt.Self)), client.NoEcho(),
		client.MaxReconnects(-1),
		client.ReconnectWait(100 * time.Millisecond), client.ReconnectBufSize(8 << 20), client.ErrorHandler(n.trouble),
		client.DisconnectErrHandler(func(_ *client.Conn, err error) {
			if err != nil {
				n.log.Warn("lost the connection to the server; trying again", zap.Error(err))
			}
		})}
	if url == "" {
		if n.server, err = startServer(n.opt); err != nil {
			return err
		}
		options = append(options, client.InProcessServer(n.server), client.Token(n.server.token))
	} else {
		options = append(options, n.opt.TLS.client(url)...)
	}
	if n.conn, err = client.Connect(url, options...); err != nil {
		return fmt.Errorf("nats: cannot reach the server %s: %w: is it there, and do its address and credentials fit?",
			cmp.Or(url, "of this process"), err)
	}
	n.chunk = min(cmp.Or(n.opt.chunk, maxChunk), int(n.conn.MaxPayload())-headerSize-sealSize)
	return nil
}

// listen takes what others say, from now on.
func (n *Node) listen() error {
	sub, err := n.conn.Subscribe(n.subject(n.opt.Self, "*"), n.receive)
	if err != nil {
		return fmt.Errorf("nats: cannot listen: %w", err)
	}
	if err := sub.SetPendingLimits(-1, max(64<<20, 4*windowBytes)); err != nil {
		return err
	}
	return n.conn.FlushTimeout(10 * time.Second)
}

// subject is where agent from speaks to agent to.
func (n *Node) subject(to int, from string) string {
	return "fspda." + n.opt.Run + "." + strconv.Itoa(to) + "." + from
}

// trouble logs what the client library reports, such as messages that were dropped because this
// process did not keep up. They are asked for again.
func (n *Node) trouble(_ *client.Conn, _ *client.Subscription, err error) {
	n.stats.trouble.Add(1)
	n.log.Debug("the connection reports", zap.Error(err))
}

// Start meets the others. lines is what Save returned at the checkpoint that the agent goes on
// from, nil at iteration 0; reported is the number of reports of each agent that this one need not
// hear again.
func (n *Node) Start(lines []byte, reported int) error {
	if lines != nil {
		if err := n.restore(lines); err != nil {
			return err
		}
	}
	for _, p := range n.others() {
		p.mu.Lock()
		p.in[reports].next, p.in[reports].stable = uint64(reported), uint64(reported)
		p.mu.Unlock()
	}
	if err := n.listen(); err != nil { // not before the lines are what they were: others hear at once where they stand
		return err
	}
	n.aside.Go(n.clock)
	for _, p := range n.others() {
		p.way.start()
	}
	return nil
}

// others lists the peers.
func (n *Node) others() []*peer {
	out := make([]*peer, 0, len(n.peers))
	for _, p := range n.peers {
		if p != nil {
			out = append(out, p)
		}
	}
	return out
}

// clock does what is due at all peers.
func (n *Node) clock() {
	t := time.NewTicker(tick)
	defer t.Stop()
	others := n.others()
	for {
		for _, p := range others {
			p.clock(time.Now())
		}
		select {
		case <-t.C:
		case <-n.quit:
			return
		}
	}
}

// Ready waits until all others are there.
func (n *Node) Ready(ctx context.Context) error {
	for _, p := range n.others() {
		p.mu.Lock()
		for !p.settled {
			if _, err := p.wait(ctx, nil); err != nil {
				p.mu.Unlock()
				return fmt.Errorf("nats: agent %d waits for agent %d: %w", n.opt.Self, p.id, err)
			}
		}
		p.mu.Unlock()
	}
	return nil
}

// Present is the number of others that have shaken hands.
func (n *Node) ConnectedPeers() int {
	present := 0
	for _, p := range n.others() {
		p.mu.Lock()
		if p.settled {
			present++
		}
		p.mu.Unlock()
	}
	return present
}

// Send implements [dist.Transport]. The message must come from the node's own agent.
func (n *Node) Send(ctx context.Context, m dist.Message) error {
	if m.From != n.opt.Self {
		panic(fmt.Sprintf("nats: the node of agent %d is to send for agent %d", n.opt.Self, m.From))
	}
	body, raw, memory, err := n.body(m)
	if err != nil {
		return err
	}
	if err := n.peer(m.To).post(ctx, exchanges, m.T, body, raw, memory); err != nil {
		return fmt.Errorf("nats: sending iteration %d from agent %d to agent %d: %w", m.T, m.From, m.To, err)
	}
	return nil
}

// body makes the body of a message, and says how many bytes it has unpacked. It lets go of the
// message, or the memory does.
func (n *Node) body(m dist.Message) (body segments, raw int, memory *lent, err error) {
	if body, ok := n.codec.share(m); ok {
		return body, body.size(), newLent(m.Release), nil
	}
	defer m.Release()
	whole, err := n.codec.encode(m)
	if err != nil {
		return nil, 0, nil, err
	}
	out := n.opt.Compression.pack(whole)
	if len(out) >= leastBody {
		memory = newLent(func() { n.bodies.put(out) })
	}
	return segments{out}, len(whole), memory, nil
}

// Recv implements [dist.Transport]. The node must be that of agent self.
func (n *Node) Recv(ctx context.Context, self, from, t int) (dist.Message, error) {
	if self != n.opt.Self {
		panic(fmt.Sprintf("nats: the node of agent %d is to receive for agent %d", n.opt.Self, self))
	}
	parcel, err := n.peer(from).take(ctx, exchanges, 0)
	if err != nil {
		return dist.Message{}, fmt.Errorf("nats: agent %d awaiting iteration %d from agent %d: %w", self, t, from, err)
	}
	m := dist.Message{T: int(parcel.t), From: from, To: self, Codec: n.opt.Codec}
	done := func() { n.bodies.put(parcel.body) }
	body, err := unpack(parcel)
	if err == nil {
		m.Values, m.Arrives, err = n.codec.decode(body, done)
	}
	if err != nil {
		return dist.Message{}, fmt.Errorf("nats: iteration %d from agent %d cannot be read: %w", t, from, err)
	}
	if err := dist.CheckIteration(m, t); err != nil {
		return dist.Message{}, err
	}
	return m, nil
}

// Report sends a record to another agent, in a stream beside that of the algorithm's messages. It
// is kept as they are.
func (n *Node) Report(ctx context.Context, to, t int, record []byte) error {
	if len(record) > n.codec.limit() {
		return fmt.Errorf("nats: a report of %d bytes; at most %d travel", len(record), n.codec.limit())
	}
	raw := len(record)
	return n.peer(to).post(ctx, reports, t, segments{n.opt.Compression.pack(record)}, raw, nil)
}

// NextReport waits for the next record of another agent.
func (n *Node) NextReport(ctx context.Context, from int) (t int, record []byte, err error) {
	parcel, err := n.peer(from).take(ctx, reports, 0)
	if err != nil {
		return 0, nil, err
	}
	record, err = unpack(parcel)
	return int(parcel.t), record, err
}

// Heard waits until another agent has taken all reports.
func (n *Node) AwaitReports(ctx context.Context, by int) error {
	p := n.peer(by)
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.out[reports].taken < p.out[reports].next {
		if _, err := p.wait(ctx, nil); err != nil {
			return err
		}
	}
	return nil
}

// Wanted tells, by something to receive, that others keep much for this agent: a checkpoint would
// set them free.
func (n *Node) CheckpointRequested() <-chan struct{} { return n.wanted }

// WireBytes is how many bytes the agent's messages have taken, headers included and each message
// counted once.
func (n *Node) WireBytes() uint64 { return n.written.Load() }

func (n *Node) peer(i int) *peer {
	if i < 0 || i >= len(n.peers) || n.peers[i] == nil {
		panic(fmt.Sprintf("nats: no line leads from agent %d to agent %d of %d", n.opt.Self, i, n.opt.Agents))
	}
	return n.peers[i]
}

// wireBytes is what a body of so many bytes takes on the wire, cut as it is for NATS, whatever way
// it goes.
func (n *Node) wireBytes(size int) uint64 {
	pieces, head := max(1, (size+n.chunk-1)/n.chunk), headerSize
	if n.signet != nil && (n.door == nil || size < directFrom) {
		head += sealSize
	}
	return uint64(size + pieces*head)
}

// publish sends a frame, sealed where there are keys. What the connection refuses is lost, as it
// may be anywhere on the way: it will be asked for again.
func (n *Node) publish(f *frame, keys *seals) {
	b := frameBytes.Get().(*[]byte)
	if f.flags &^= flagSealed; keys != nil {
		f.flags |= flagSealed
	}
	if *b = appendFrame((*b)[:0], f); keys != nil {
		*b = n.signet.seal(*b, keys)
	}
	for range n.copies(f) {
		n.send(int(f.to), n.subject(int(f.to), strconv.Itoa(n.opt.Self)), *b)
	}
	frameBytes.Put(b)
}

// copies counts a frame, and says how often it goes: once, but for tests.
func (n *Node) copies(f *frame) int {
	size := headerSize + len(f.piece)
	if f.flags&flagSealed != 0 {
		size += sealSize
	}
	n.stats.sentBytes.Add(uint64(size))
	n.stats.sentFrames.Add(1)
	if n.opt.fault != nil {
		return n.opt.fault(f)
	}
	return 1
}

// frameBytes lends memory for one frame: the connection copies what it is given.
var frameBytes = sync.Pool{New: func() any { return new([]byte) }}

// receive is what happens with each message of the network.
func (n *Node) receive(m *client.Msg) {
	f, err := decodeFrame(m.Data)
	if err != nil {
		n.drop(m.Subject, err)
		return
	}
	n.stats.gotBytes.Add(uint64(len(m.Data)))
	n.stats.gotFrames.Add(1)
	sender := m.Subject[strings.LastIndexByte(m.Subject, '.')+1:]
	if sender != strconv.Itoa(int(f.from)) || f.run != n.run || int(f.to) != n.opt.Self ||
		uint64(f.from) >= uint64(len(n.peers)) || int(f.from) == n.opt.Self {
		n.drop(m.Subject, &FrameError{Got: fmt.Sprintf(
			"it says that it goes from agent %d to agent %d, and came over %s", f.from, f.to, clip(m.Subject))})
		return
	}
	if err := n.peers[f.from].handle(&f); err != nil {
		n.drop(m.Subject, err)
	}
}

// drop counts a frame that is not for us, and logs the first.
func (n *Node) drop(subject string, err error) {
	if n.stats.dropped.Add(1) == 1 {
		n.log.Warn("dropped a frame; further ones are only counted", zap.String("subject", clip(subject)),
			zap.Error(err))
	}
	if errors.Is(err, errVersion) && n.ConnectedPeers() == 0 {
		n.fail(fmt.Errorf("%w: use the same program everywhere", err))
	}
}

// fail ends all waits with an error.
func (n *Node) fail(err error) {
	n.once.Do(func() {
		n.failure = err
		close(n.dead)
	})
}

func (n *Node) cause() error { return n.failure }

// ErrClosed ends the waits at a node that was closed.
var ErrClosed = errors.New("nats: the node is closed")

// Close leaves the network, after what was sent has left the process.
func (n *Node) Close() {
	n.fail(ErrClosed)
	select {
	case <-n.quit:
		return
	default:
		close(n.quit)
	}
	n.closeDoor()
	n.aside.Wait()
	if n.conn != nil {
		for _, p := range n.others() {
			p.leave()
		}
		_ = n.conn.FlushTimeout(time.Second) // what does not leave now is lost, as anything may be
		n.conn.Close()
	}
	if n.server != nil {
		n.server.stop()
	}
}
