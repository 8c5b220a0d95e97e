package link

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	tls "google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/experimental"
	"google.golang.org/grpc/keepalive"
	caller "google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"fspda/dist/discover"
)

const (
	// dialTimeout bounds the dialing of all addresses of a peer, a handshake, and a keepalive ping.
	dialTimeout   = 3 * time.Second
	keepaliveTime = 10 * time.Second // The idle time before a keepalive ping.

	// minRedial is the delay after a connection that failed. It doubles each time, up to maxRedial.
	minRedial = 20 * time.Millisecond
	maxRedial = time.Second

	directRetry  = time.Minute            // A relayed link is replaced by a direct one after this time, if possible.
	maxUnrelayed = 5                      // A link that is to be relayed is dialed after so many failures.
	dialStagger  = 100 * time.Millisecond // The next address of a peer is dialed after this time.
	drainTimeout = time.Second            // A node that closes sends queued messages for this time.
	warnAfter    = 15 * time.Second       // A peer that cannot be reached for this time is logged.

	heartbeatInterval = 500 * time.Millisecond // A link in use has at least one frame in this time.
	pauseInterval     = 5 * time.Second        // Any other link has at least one frame in this time.
	inUse             = 10 * time.Second       // A link is in use for this time after a message.
)

// Flow-control windows in bytes. Relayed bytes wait in the queues of other servers, which are
// bounded.
const (
	directWindow = 16 << 20
	relayWindow  = 4 << 20
)

// streamDesc is the method of the service. Its full name is methodPath.
var streamDesc = grpc.StreamDesc{StreamName: "Frames", ClientStreams: true, ServerStreams: true}

const (
	serviceName = "fspda.Link"
	methodPath  = "/fspda.Link/Frames"
)

// bufferSize returns the size of the read and write buffers of a connection. A vector of the model
// fits with the headers of its frames, so that one system call writes it.
func (n *Node) bufferSize() int { return min(max(16<<10, 4*n.opt.Dim+1<<10), 256<<10) }

// serve accepts streams from a listener until the node closes.
func (n *Node) serve(l net.Listener, window int32) {
	o := []grpc.ServerOption{grpc.ForceServerCodecV2(frameCodec{}), grpc.MaxRecvMsgSize(maxChunk + headerSize),
		grpc.MaxConcurrentStreams(1), grpc.MaxHeaderListSize(maxHello), grpc.InitialWindowSize(window),
		grpc.InitialConnWindowSize(window), grpc.ReadBufferSize(n.bufferSize()),
		grpc.WriteBufferSize(n.bufferSize()), grpc.ConnectionTimeout(dialTimeout),
		experimental.BufferPool(&readBufferPool{}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: keepaliveTime, Timeout: dialTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: keepaliveTime / 2,
			PermitWithoutStream: true})}
	if t := n.opt.TLS.Agents; t != nil {
		o = append(o, grpc.Creds(tls.NewTLS(t.Clone())))
	}
	s := grpc.NewServer(o...)
	desc := streamDesc
	desc.Handler = func(_ any, stream grpc.ServerStream) error { return n.accept(stream, window == directWindow) }
	s.RegisterService(&grpc.ServiceDesc{ServiceName: serviceName, HandlerType: (*any)(nil),
		Streams: []grpc.StreamDesc{desc}}, nil)
	n.background.Go(func() {
		if err := s.Serve(l); err != nil {
			n.log.Warn("a server for other agents has stopped", zap.Error(err))
		}
	})
	n.background.Go(func() {
		<-n.open.Done()
		defer time.AfterFunc(drainTimeout, s.Stop).Stop()
		s.GracefulStop()
	})
}

// listenDirect listens for direct connections. They are served from Start on: before, the node does
// not know which messages it needs.
func (n *Node) listenDirect() error {
	if _, _, err := discover.HostPort(n.opt.Listen); err != nil {
		return err
	}
	l, err := net.Listen("tcp", n.opt.Listen)
	if err != nil {
		return fmt.Errorf("link: cannot listen at %s for direct links: %w: is the port taken?", n.opt.Listen, err)
	}
	n.direct = []net.Listener{l}
	return nil
}

// addresses returns the addresses at which this node accepts connections now. They change with the
// network of the machine.
func (n *Node) addresses() []string {
	if len(n.direct) == 0 {
		return nil
	}
	host, _, _ := net.SplitHostPort(n.opt.Listen) // listenDirect has checked it.
	return listenAddresses(host, n.opt.Advertise, n.direct[0].Addr())
}

// listenAddresses returns the addresses of a listener.
func listenAddresses(host, advertise string, at net.Addr) []string {
	port := strconv.Itoa(at.(*net.TCPAddr).Port)
	if advertise != "" {
		return []string{net.JoinHostPort(advertise, port)}
	}
	if ip := net.ParseIP(host); host != "" && (ip == nil || !ip.IsUnspecified()) {
		return []string{net.JoinHostPort(host, port)}
	}
	var out []string
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	for _, a := range all {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.IsGlobalUnicast() && len(out) < discover.MaxAddresses-1 {
			out = append(out, net.JoinHostPort(ip.IP.String(), port))
		}
	}
	return append(out, net.JoinHostPort("127.0.0.1", port)) // agents on this machine, without a network
}

// accept runs the link of a node that has dialed this one.
func (n *Node) accept(stream grpc.ServerStream, direct bool) error {
	l := newLink(nil, stream, direct)
	_, text, err := l.readControl()
	var h hello
	if err == nil {
		h, err = decodeHello(text)
	}
	if err == nil {
		err = n.authenticate(stream.Context(), &h)
	}
	if err != nil {
		if _, invalid := errors.AsType[*FrameError](err); invalid { // else the stream has ended early
			n.drop("a stream", err)
		}
		return status.Error(codes.InvalidArgument, err.Error())
	}
	p := n.peers[h.From]
	l.peer = p
	sleep(stream.Context(), p.holdOff())
	if r := p.establish(l, &h, true); r != nil {
		p.refuse(r, h)
		return l.writeControl(kindRefuse, r)
	}
	if err := l.writeControl(kindHello, p.hello()); err != nil {
		l.end(err)
	}
	if err = l.run(); errors.Is(err, errDrained) || errors.Is(err, io.EOF) {
		return nil
	}
	n.log.Debug("lost the connection to an agent", zap.Int("peer", p.id), zap.Error(err))
	return status.Error(codes.Aborted, err.Error())
}

// authenticate checks who has sent a handshake.
func (n *Node) authenticate(ctx context.Context, h *hello) error {
	if h.Run != n.opt.Run || h.From <= n.opt.Self || h.From >= n.opt.Agents {
		return &FrameError{Got: fmt.Sprintf("a handshake of agent %d of run %s", h.From, clip(h.Run))}
	}
	if n.opt.TLS.Agents == nil {
		return nil
	}
	if p, ok := caller.FromContext(ctx); ok {
		if t, ok := p.AuthInfo.(tls.TLSInfo); ok {
			if who, ok := n.opt.TLS.rankOf(t.State); n.opt.TLS.agent == nil || ok && who == h.From {
				return nil
			}
		}
	}
	return &FrameError{Got: fmt.Sprintf("a handshake in the name of agent %d whose certificate does not belong to it",
		h.From)}
}

// want makes sure that there is a link to the peer. The caller holds the lock.
func (p *peer) want() {
	if p.wanted {
		return
	}
	p.wanted = true
	p.notify()
	if p.started {
		p.dialLoop()
	}
}

// dialLoop begins to dial the peer, if this node is the one that dials. The caller holds the lock.
func (p *peer) dialLoop() {
	if p.id < p.node.opt.Self && p.node.open.Err() == nil {
		p.node.background.Go(func() { p.keepConnected(p.node.open) })
	}
}

// keepConnected dials the peer again and again until the node closes. It warns once of each time in
// which the peer cannot be reached.
func (p *peer) keepConnected(ctx context.Context) {
	delay := minRedial
	warned := false
	for ctx.Err() == nil {
		began := time.Now()
		if err := p.connect(ctx); err != nil && ctx.Err() == nil {
			p.node.log.Debug("no connection to an agent", zap.Int("peer", p.id), zap.Error(err))
			late := p.node.SilentFor(p.id) > p.node.opt.warnAfter
			if late && !warned {
				p.node.log.Warn("an agent cannot be reached; trying again", zap.Int("peer", p.id), zap.Error(err))
			}
			warned = late
		}
		if time.Since(began) > maxRedial {
			delay = minRedial
		}
		sleep(ctx, delay+rand.N(delay)) // jitter spreads the attempts; it does not affect results
		delay = min(2*delay, p.node.opt.maxRedial)
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// connect finds out where the peer listens, dials it, directly or else relayed, and runs the link
// until it ends.
func (p *peer) connect(ctx context.Context) error {
	n := p.node
	addresses, err := n.opt.Discovery.Addresses(ctx, p.id)
	if err != nil {
		return err
	}
	if p.relayFirst() {
		relay, err := n.opt.Discovery.Relay(p.id)
		if err == nil {
			end, err := p.dial(ctx, relay, relayWindow)
			if err == nil {
				p.unrelayed = 0
				return <-end
			}
			p.unrelayed++
			return err
		}
	}
	var unreachable error
	if time.Since(p.unreachable) > n.opt.directRetry && len(addresses) > 0 {
		end, err := p.dialDirect(ctx, addresses)
		if err == nil {
			p.unrelayed = 0 // The next one may be relayed.
			return <-end
		}
		if errors.Is(err, errRefused) || ctx.Err() != nil {
			return err
		}
		unreachable = err
	}
	relay, err := n.opt.Discovery.Relay(p.id)
	if err != nil && unreachable != nil {
		return fmt.Errorf("%w: %w", unreachable, err)
	} else if err != nil {
		return err
	}
	if unreachable != nil {
		p.unreachable = time.Now()
		n.log.Warn("no direct connection to an agent; it is relayed", zap.Int("peer", p.id),
			zap.Strings("addresses", addresses), zap.Error(unreachable))
	}
	end, err := p.dial(ctx, relay, relayWindow)
	if err != nil {
		return err
	}
	for len(addresses) > 0 {
		select {
		case err := <-end:
			return err
		case <-time.After(n.opt.directRetry):
		}
		if direct, err := p.dialAgain(ctx, &addresses); err == nil { // it has replaced the relayed link
			return <-direct
		}
	}
	return <-end
}

// relayFirst reports whether the link to the peer is one over which only reports go, of many to agent
// 0, which is relayed where it can be: agent 0 has no connection for each other agent.
func (p *peer) relayFirst() bool {
	o := &p.node.opt
	return p.id == hub && o.Tree && o.Near != nil && !slices.Contains(o.Near, hub) && discover.Parent(o.Self) != hub &&
		p.unrelayed < maxUnrelayed
}

// dialAgain dials the peer directly, at addresses that may have changed.
func (p *peer) dialAgain(ctx context.Context, addresses *[]string) (<-chan error, error) {
	short, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	if now, err := p.node.opt.Discovery.Addresses(short, p.id); err == nil && len(now) > 0 {
		*addresses = now
	}
	return p.dialDirect(ctx, *addresses)
}

// dialed is the result of dialing an address.
type dialed struct {
	at   int // The position of the address in the list.
	conn net.Conn
	err  error
}

// dialDirect dials the addresses of the peer side by side (RFC 8305), and starts a link over the
// first connection on which the peer answers. It begins with the address that worked last.
func (p *peer) dialDirect(ctx context.Context, addresses []string) (end <-chan error, err error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	results := make(chan dialed, len(addresses))
	for k := range addresses {
		at := (p.first + k) % len(addresses)
		go func() {
			sleep(ctx, time.Duration(k)*dialStagger)
			c, err := (&net.Dialer{}).DialContext(ctx, "tcp", addresses[at])
			results <- dialed{at, c, err}
		}()
	}
	p.first++ // An address that is connected and does not answer is not the first one again.
	for range addresses {
		r := <-results
		switch {
		case r.err != nil && err == nil && end == nil:
			err = r.err
		case r.err == nil && (end != nil || ctx.Err() != nil):
			_ = r.conn.Close()
		case r.err == nil:
			if end, err = p.dial(ctx, r.conn, directWindow); err == nil {
				p.first = r.at
			}
			if err == nil || errors.Is(err, errRefused) {
				cancel() // The others are not needed.
			}
		}
	}
	if end == nil && err == nil { // The node closes.
		err = context.Cause(ctx)
	}
	return end, err
}

// dial starts a link over a connection. The channel delivers why the link has ended.
func (p *peer) dial(ctx context.Context, over net.Conn, window int32) (<-chan error, error) {
	n := p.node
	by := insecure.NewCredentials()
	if n.opt.TLS.Agents != nil {
		by = tls.NewTLS(n.opt.TLS.linkTo(p.id))
	}
	if n.opt.wrap != nil {
		over = n.opt.wrap(over)
	}
	given := givenConn{conn: over}
	conn, err := grpc.NewClient("passthrough:///agent", grpc.WithTransportCredentials(by),
		grpc.WithContextDialer(given.dial), grpc.WithDisableServiceConfig(), grpc.WithNoProxy(),
		grpc.WithInitialWindowSize(window), grpc.WithInitialConnWindowSize(window),
		grpc.WithReadBufferSize(n.bufferSize()), grpc.WithWriteBufferSize(n.bufferSize()),
		experimental.WithBufferPool(&readBufferPool{}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: keepaliveTime, Timeout: dialTimeout}),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(frameCodec{}), grpc.MaxCallRecvMsgSize(maxChunk+headerSize)))
	if err != nil {
		given.closeUnused()
		return nil, err
	}
	whole, cancel := context.WithCancel(context.Background())
	late := time.AfterFunc(dialTimeout, cancel)
	defer context.AfterFunc(ctx, cancel)()
	l := newLink(p, nil, window == directWindow)
	if l.stream, err = conn.NewStream(whole, &streamDesc, methodPath); err == nil {
		p.detach()
		err = l.greet()
	}
	if err == nil && !late.Stop() {
		err = context.DeadlineExceeded
	}
	end := func(err error) {
		l.end(err)
		cancel()
		_ = conn.Close()
		given.closeUnused()
	}
	if err != nil {
		end(err)
		return nil, err
	}
	ended := make(chan error, 1)
	n.background.Go(func() {
		err := l.run()
		if n.open.Err() == nil && !errors.Is(err, errSuperseded) {
			n.log.Info("lost the connection to an agent; reconnecting", zap.Int("peer", p.id), zap.Error(err))
		}
		end(err)
		ended <- err
	})
	return ended, nil
}

// givenConn gives a connection to gRPC once: a link does not outlive it.
type givenConn struct {
	conn net.Conn
	used atomic.Bool
}

func (g *givenConn) dial(context.Context, string) (net.Conn, error) {
	if g.used.Swap(true) {
		return nil, errors.New("link: the connection has ended")
	}
	return g.conn, nil
}

// closeUnused closes the connection if gRPC has not taken it. If gRPC has, it closes it.
func (g *givenConn) closeUnused() {
	if !g.used.Swap(true) {
		_ = g.conn.Close()
	}
}

// greet completes the handshake of a link to a node that this one has dialed.
func (l *link) greet() error {
	p := l.peer
	if err := l.writeControl(kindHello, p.hello()); err != nil {
		return err
	}
	kind, text, err := l.readControl()
	if err != nil {
		return err
	}
	if kind == kindRefuse {
		return p.refusedBy(text)
	}
	h, err := decodeHello(text)
	if err != nil {
		return err
	}
	if h.Run != p.node.opt.Run || h.From != p.id {
		return &FrameError{Got: fmt.Sprintf("agent %d of run %s answers in place of agent %d", h.From, clip(h.Run),
			p.id)}
	}
	if r := p.establish(l, &h, false); r != nil {
		p.refuse(r, h)
		return l.refuse(r)
	}
	return nil
}

// refuse tells a node that has answered why it is refused, and waits until that one ends the
// stream.
func (l *link) refuse(r *refusal) error {
	err := l.writeControl(kindRefuse, r)
	for err == nil {
		var f inFrame
		err = l.stream.RecvMsg(&f)
		f.free()
	}
	return errRefused
}
