package nats

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
)

const (
	dialTimeout   = 3 * time.Second  // for one address, and for the answer to a keepalive ping
	keepaliveTime = 10 * time.Second // idle time before a keepalive ping
	minRedial     = time.Second      // delay after a failed attempt; doubles each time
	maxRedial     = time.Minute
	drainTimeout  = time.Second // to send what is queued when the node closes
	directBuffer  = 256 << 10   // of a connection, for reading and writing
)

// directLink sends large messages to a peer. Messages are queued, so that no agent waits for the
// network. Without a connection, or when it breaks, they go over NATS. A nil directLink is valid
// and never connected.
type directLink struct {
	peer        *peer
	queue       chan queuedMessage
	dialRequest chan struct{} // there is a large message and no stream

	mu          sync.Mutex
	offer       *directOffer // nil: the peer has no direct server
	conn        *grpc.ClientConn
	stream      grpc.ClientStream // nil: not connected
	trusted     bool              // the stream delivers bytes unchanged: fragments need no checksum
	queued      map[messageKey]bool
	notBefore   time.Time // earliest time of the next attempt
	redialDelay time.Duration
}

// queuedMessage is a message in the queue, to be sent from a byte on.
type queuedMessage struct {
	messageKey
	r    sentMessage
	from int
}

// messageKey identifies a message to the peer.
type messageKey struct {
	stream int
	seq    uint64
}

func newDirectLink(p *peer) *directLink {
	return &directLink{peer: p, queue: make(chan queuedMessage, 2*window), dialRequest: make(chan struct{}, 1),
		queued: make(map[messageKey]bool)}
}

// setOffer stores the address of the server of the peer's current incarnation.
func (w *directLink) setOffer(offer *directOffer) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if offer != nil && w.offer != nil && offer.Token == w.offer.Token {
		return
	}
	w.disconnect()
	w.offer, w.redialDelay, w.notBefore = offer, 0, time.Time{}
}

// disconnect closes the connection. What was in flight will be requested again. The caller holds
// the lock.
func (w *directLink) disconnect() {
	if w.conn != nil {
		_ = w.conn.Close()
	}
	w.conn, w.stream = nil, nil
}

// enqueue queues a message if the link is connected, and reports whether it did. Otherwise it
// initiates a connection for later messages.
func (w *directLink) enqueue(stream int, r sentMessage, from int) bool {
	if w == nil || r.size-from < minDirectSize {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stream == nil {
		if w.offer != nil && time.Now().After(w.notBefore) {
			select {
			case w.dialRequest <- struct{}{}:
			default:
			}
		}
		return false
	}
	key := messageKey{stream, r.seq}
	if w.queued[key] {
		return true // it is queued already
	}
	select {
	case w.queue <- queuedMessage{key, r, from}:
		r.memory.retain()
		w.queued[key] = true
		return true
	default:
		return false
	}
}

// start starts the goroutine of the link. The node's Close ends it.
func (w *directLink) start() {
	if w != nil {
		w.peer.node.background.Go(w.run)
	}
}

// run connects on request and sends queued messages until the node closes.
func (w *directLink) run() {
	quit := w.peer.node.quit
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { // bounds how long Close waits for the network
		select {
		case <-quit:
			time.AfterFunc(drainTimeout, cancel)
		case <-ctx.Done():
		}
	}()
	for {
		select {
		case p := <-w.queue:
			w.send(p)
		case <-w.dialRequest:
			w.connect(ctx)
		case <-quit:
			w.drain()
			return
		}
	}
}

// drain sends the queue and waits until it has arrived.
func (w *directLink) drain() {
	for len(w.queue) > 0 {
		w.send(<-w.queue)
	}
	w.mu.Lock()
	stream := w.stream
	w.mu.Unlock()
	if stream != nil && stream.CloseSend() == nil {
		_ = stream.RecvMsg(&inFrame{}) // returns when the server has read everything
	}
	w.mu.Lock()
	w.disconnect()
	w.mu.Unlock()
}

// connect dials the addresses of the peer's server one after the other.
func (w *directLink) connect(ctx context.Context) {
	w.mu.Lock()
	offer := w.offer
	late := w.stream != nil || time.Now().Before(w.notBefore)
	w.mu.Unlock()
	if late || offer == nil {
		return
	}
	var conn *grpc.ClientConn
	var stream grpc.ClientStream
	err := errors.New("the peer advertises no address")
	var found string
	for _, address := range offer.Addresses {
		if conn, stream, err = w.dial(ctx, address, offer.Token); err == nil || ctx.Err() != nil {
			found = address
			break
		}
	}
	log := w.peer.node.log
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err != nil:
		w.redialDelay = min(max(2*w.redialDelay, minRedial), maxRedial)
		// jitter spreads the attempts; it does not affect results
		w.notBefore = time.Now().Add(w.redialDelay + rand.N(w.redialDelay))
		log.Info("no direct link to an agent; large messages go over NATS", zap.Int("peer", w.peer.id),
			zap.Strings("addresses", offer.Addresses), zap.Error(err))
	case w.offer != offer: // the peer has another server by now
		_ = conn.Close()
	default:
		w.conn, w.stream, w.redialDelay, w.trusted = conn, stream, 0, w.peer.node.trustedAddress(found)
		log.Debug("direct link to an agent", zap.Int("peer", w.peer.id), zap.String("target", conn.Target()))
	}
}

// dial connects to one address.
func (w *directLink) dial(ctx context.Context, address, token string) (*grpc.ClientConn, grpc.ClientStream, error) {
	n := w.peer.node
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(n.dialCredentials(w.peer.id)),
		grpc.WithDisableServiceConfig(), grpc.WithNoProxy(),
		grpc.WithWriteBufferSize(directBuffer), grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: keepaliveTime,
			Timeout: dialTimeout}))
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(metadata.AppendToOutgoingContext(ctx, tokenKey, token, fromKey,
		strconv.Itoa(n.opt.Self)))
	late := time.AfterFunc(dialTimeout, cancel)
	stream, err := conn.NewStream(ctx, &frameStream, framePath, grpc.ForceCodecV2(frameCodec{}))
	if err == nil {
		context.AfterFunc(stream.Context(), cancel)
		_, err = stream.Header() // until the server has accepted the stream
	}
	if err == nil && !late.Stop() {
		err = context.DeadlineExceeded
	}
	if err != nil {
		cancel()
		_ = conn.Close()
		return nil, nil, err
	}
	return conn, stream, nil
}

// send sends a message, over NATS if the link is broken.
func (w *directLink) send(p queuedMessage) {
	defer p.r.memory.release()
	w.mu.Lock()
	stream, guarded := w.stream, w.trusted
	w.mu.Unlock()
	err := io.EOF
	if stream != nil {
		err = w.sendFragments(stream, p, guarded)
	}
	w.mu.Lock()
	delete(w.queued, p.messageKey)
	if err != nil && w.stream == stream {
		w.disconnect()
	}
	w.mu.Unlock()
	if err != nil {
		w.peer.sendOverNATS(p.stream, p.r, p.from)
	}
}

// sendFragments sends the fragments of a message over a stream.
func (w *directLink) sendFragments(stream grpc.ClientStream, p queuedMessage, guarded bool) error {
	for f := range frames(p.stream, p.r, p.from, maxChunk) {
		w.peer.fillHeader(f)
		if guarded {
			f.flags |= flagTrustedChannel
		}
		out := &outFrame{header: appendHeader(make([]byte, 0, headerSize), f), payload: f.payload, memory: p.r.memory}
		for range w.peer.node.countSent(f) {
			if err := stream.SendMsg(out); err != nil {
				return err
			}
		}
	}
	return nil
}

// connected reports whether the link is connected.
func (w *directLink) connected() bool {
	if w == nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stream != nil
}
