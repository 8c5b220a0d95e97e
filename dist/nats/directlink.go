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
	dialTime     = 3 * time.Second  // for one place, and for an answer to a sign of life
	quietTime    = 10 * time.Second // after which a sign of life is asked for
	firstRetry   = time.Second      // after nobody opened, and then twice as long each time
	lastRetry    = time.Minute
	lastWords    = time.Second // for what is in the queue when the node closes
	directBuffer = 256 << 10   // of a connection, for reading and writing
)

// way is the way of large messages to a peer. Those that take it wait in a queue, so that no agent
// waits for the network; where there is no way, or it breaks, they go over NATS. A nil way is none.
type way struct {
	peer  *peer
	queue chan parcelOut
	knock chan struct{} // somebody has a large message, and there is no stream

	mu      sync.Mutex
	sign    *directOffer // nil: the peer has no door
	conn    *grpc.ClientConn
	stream  grpc.ClientStream // nil: none yet
	guarded bool              // the stream changes no bit: pieces need no checksum
	due     map[parcelKey]bool
	again   time.Time // not before
	wait    time.Duration
}

// parcelOut is a message for the queue, from a byte on.
type parcelOut struct {
	parcelKey
	r    record
	from int
}

// parcelKey tells messages of a line apart.
type parcelKey struct {
	stream int
	seq    uint64
}

func newWay(p *peer) *way {
	return &way{peer: p, queue: make(chan parcelOut, 2*window), knock: make(chan struct{}, 1),
		due: make(map[parcelKey]bool)}
}

// learn notes where the door of the peer's present life is.
func (w *way) learn(sign *directOffer) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if sign != nil && w.sign != nil && sign.Token == w.sign.Token {
		return
	}
	w.leave()
	w.sign, w.wait, w.again = sign, 0, time.Time{}
}

// leave ends the connection. What was on its way is asked for again. The caller holds the lock.
func (w *way) leave() {
	if w.conn != nil {
		_ = w.conn.Close()
	}
	w.conn, w.stream = nil, nil
}

// take takes a message if there is a way for it. Where there is none yet it is looked for, for
// those that come later.
func (w *way) take(stream int, r record, from int) bool {
	if w == nil || r.size-from < directFrom {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stream == nil {
		if w.sign != nil && time.Now().After(w.again) {
			select {
			case w.knock <- struct{}{}:
			default:
			}
		}
		return false
	}
	key := parcelKey{stream, r.seq}
	if w.due[key] {
		return true // it waits for its turn
	}
	select {
	case w.queue <- parcelOut{key, r, from}:
		r.lent.hold()
		w.due[key] = true
		return true
	default:
		return false
	}
}

// start begins to carry. The node's Close ends it.
func (w *way) start() {
	if w != nil {
		w.peer.node.aside.Go(w.carry)
	}
}

// carry opens the way when it is wanted, and sends what is in the queue, until the node closes.
func (w *way) carry() {
	quit := w.peer.node.quit
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { // no network holds up a Close for long
		select {
		case <-quit:
			time.AfterFunc(lastWords, cancel)
		case <-ctx.Done():
		}
	}()
	for {
		select {
		case p := <-w.queue:
			w.send(p)
		case <-w.knock:
			w.open(ctx)
		case <-quit:
			w.end()
			return
		}
	}
}

// end sends what is left and sees that it arrives.
func (w *way) end() {
	for len(w.queue) > 0 {
		w.send(<-w.queue)
	}
	w.mu.Lock()
	stream := w.stream
	w.mu.Unlock()
	if stream != nil && stream.CloseSend() == nil {
		_ = stream.RecvMsg(&inFrame{}) // the end, when the other side has read all
	}
	w.mu.Lock()
	w.leave()
	w.mu.Unlock()
}

// open tries the places of the peer's door, one after the other.
func (w *way) open(ctx context.Context) {
	w.mu.Lock()
	sign := w.sign
	late := w.stream != nil || time.Now().Before(w.again)
	w.mu.Unlock()
	if late || sign == nil {
		return
	}
	var conn *grpc.ClientConn
	var stream grpc.ClientStream
	err := errors.New("it names no place")
	var found string
	for _, place := range sign.Places {
		if conn, stream, err = w.try(ctx, place, sign.Token); err == nil || ctx.Err() != nil {
			found = place
			break
		}
	}
	log := w.peer.node.log
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err != nil:
		w.wait = min(max(2*w.wait, firstRetry), lastRetry)
		w.again = time.Now().Add(w.wait + rand.N(w.wait)) // not everybody at once; nothing of a run hangs on it
		log.Info("no direct way to an agent; large messages go over NATS", zap.Int("peer", w.peer.id),
			zap.Strings("places", sign.Places), zap.Error(err))
	case w.sign != sign: // it has another door by now
		_ = conn.Close()
	default:
		w.conn, w.stream, w.wait, w.guarded = conn, stream, 0, w.peer.node.guards(found)
		log.Debug("direct way to an agent", zap.Int("peer", w.peer.id), zap.String("target", conn.Target()))
	}
}

// try knocks at one place.
func (w *way) try(ctx context.Context, place, token string) (*grpc.ClientConn, grpc.ClientStream, error) {
	n := w.peer.node
	conn, err := grpc.NewClient("passthrough:///"+place, grpc.WithTransportCredentials(n.transport(w.peer.id)),
		grpc.WithDisableServiceConfig(), grpc.WithNoProxy(),
		grpc.WithWriteBufferSize(directBuffer), grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: quietTime,
			Timeout: dialTime}))
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(metadata.AppendToOutgoingContext(ctx, tokenKey, token, fromKey,
		strconv.Itoa(n.opt.Self)))
	late := time.AfterFunc(dialTime, cancel)
	stream, err := conn.NewStream(ctx, &frameStream, framePath, grpc.ForceCodecV2(frameCodec{}))
	if err == nil {
		context.AfterFunc(stream.Context(), cancel)
		_, err = stream.Header() // until it is let in
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

// send sends a message, over NATS where the way is gone.
func (w *way) send(p parcelOut) {
	defer p.r.lent.release()
	w.mu.Lock()
	stream, guarded := w.stream, w.guarded
	w.mu.Unlock()
	err := io.EOF
	if stream != nil {
		err = w.pieces(stream, p, guarded)
	}
	w.mu.Lock()
	delete(w.due, p.parcelKey)
	if err != nil && w.stream == stream {
		w.leave()
	}
	w.mu.Unlock()
	if err != nil {
		w.peer.relay(p.stream, p.r, p.from)
	}
}

// pieces sends the pieces of a message over a stream.
func (w *way) pieces(stream grpc.ClientStream, p parcelOut, guarded bool) error {
	for f := range frames(p.stream, p.r, p.from, maxChunk) {
		w.peer.stamp(f)
		if guarded {
			f.flags |= flagGuarded
		}
		out := &outFrame{header: appendHeader(make([]byte, 0, headerSize), f), piece: f.piece, lent: p.r.lent}
		for range w.peer.node.copies(f) {
			if err := stream.SendMsg(out); err != nil {
				return err
			}
		}
	}
	return nil
}

// there tells whether the way is open.
func (w *way) there() bool {
	if w == nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stream != nil
}
