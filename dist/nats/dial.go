package nats

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
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
)

const (
	dialTimeout   = 3 * time.Second       // for all addresses of a peer, for the handshake, for a keepalive ping
	keepaliveTime = 10 * time.Second      // idle time before a keepalive ping
	minRedial     = 20 * time.Millisecond // delay after a connection that failed; doubles each time
	maxRedial     = time.Second
	directRetry   = time.Minute // until a direct link is tried again in place of a relayed one
	drainTimeout  = time.Second // to send what is queued when the node closes

	heartbeatInterval = 500 * time.Millisecond // a node sends at least one frame in this time
)

// DirectServer configures the gRPC server to which nodes of higher ranks connect.
type DirectServer struct {
	Listen    string // HOST:PORT; port 0 is any free one; "": no server: connections are relayed by NATS
	Advertise string // host under which other nodes reach it; "": all addresses of this machine that fit Listen
}

// Flow-control windows in bytes. What is relayed waits in the queues of NATS servers, which are
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

// bufferSize returns the size of the read and write buffers of a connection.
func (n *Node) bufferSize() int { return min(max(16<<10, 4*n.opt.Dim), 256<<10) }

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
	if t := n.opt.TLS.Routes; t != nil {
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

// directListeners are where the server for direct connections listens: one listener, or none.
type directListeners struct {
	listeners []net.Listener
	addresses []string // of them
}

// listenDirect listens for direct connections. They are served from Start on: before, the node does
// not know which messages it needs.
func (n *Node) listenDirect() error {
	host, _, err := hostPort(n.opt.Direct.Listen)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", n.opt.Direct.Listen)
	if err != nil {
		return fmt.Errorf("nats: cannot listen at %s for direct links: %w: is the port taken?", n.opt.Direct.Listen,
			err)
	}
	n.direct = directListeners{[]net.Listener{l}, listenAddresses(host, n.opt.Direct.Advertise, l.Addr())}
	return nil
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
		if ip, ok := a.(*net.IPNet); ok && ip.IP.IsGlobalUnicast() && len(out) < maxAddresses-1 {
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
	if n.opt.TLS.Routes == nil {
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

// keepConnected dials the peer again and again until the node closes.
func (p *peer) keepConnected(ctx context.Context) {
	delay := minRedial
	for ctx.Err() == nil {
		began := time.Now()
		if err := p.connect(ctx); err != nil && ctx.Err() == nil {
			p.node.log.Debug("no connection to an agent", zap.Int("peer", p.id), zap.Error(err))
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

// connect asks the peer where it listens, dials it, directly or else relayed by NATS, and runs the
// link until it ends.
func (p *peer) connect(ctx context.Context) error {
	addresses, err := p.ask(ctx)
	if err != nil {
		return err
	}
	if time.Since(p.unreachable) > p.node.opt.directRetry && len(addresses) > 0 {
		end, err := p.dialDirect(ctx, addresses)
		if err == nil {
			return <-end
		}
		if errors.Is(err, errRefused) || ctx.Err() != nil {
			return err
		}
		p.unreachable = time.Now()
		p.node.log.Info("no direct connection to an agent; NATS relays one", zap.Int("peer", p.id),
			zap.Strings("addresses", addresses), zap.Error(err))
	}
	end, err := p.dial(ctx, p.openRelay, relayWindow)
	if err != nil {
		return err
	}
	for len(addresses) > 0 {
		select {
		case err := <-end:
			return err
		case <-time.After(p.node.opt.directRetry):
		}
		if direct, err := p.dialDirect(ctx, addresses); err == nil { // it has replaced the relayed link
			return <-direct
		}
	}
	return <-end
}

// dialDirect dials the addresses of the peer one after the other.
func (p *peer) dialDirect(ctx context.Context, addresses []string) (end <-chan error, err error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	d := net.Dialer{Timeout: max(dialTimeout/time.Duration(len(addresses)), 500*time.Millisecond)}
	for _, address := range addresses {
		end, err = p.dial(ctx, func(ctx context.Context) (net.Conn, error) {
			return d.DialContext(ctx, "tcp", address)
		}, directWindow)
		if err == nil || errors.Is(err, errRefused) || ctx.Err() != nil {
			break
		}
	}
	return end, err
}

// dial opens a connection and starts a link over it. The channel delivers why the link has ended.
func (p *peer) dial(ctx context.Context, open func(context.Context) (net.Conn, error), window int32) (<-chan error,
	error) {
	n := p.node
	by := insecure.NewCredentials()
	if n.opt.TLS.Routes != nil {
		by = tls.NewTLS(n.opt.TLS.routeTo(p.id))
	}
	conn, err := grpc.NewClient("passthrough:///agent", grpc.WithTransportCredentials(by),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			c, err := open(ctx)
			if err == nil && n.opt.wrap != nil {
				c = n.opt.wrap(c)
			}
			return c, err
		}), grpc.WithDisableServiceConfig(), grpc.WithNoProxy(), grpc.WithInitialWindowSize(window),
		grpc.WithInitialConnWindowSize(window), grpc.WithReadBufferSize(n.bufferSize()),
		grpc.WithWriteBufferSize(n.bufferSize()), experimental.WithBufferPool(&readBufferPool{}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: keepaliveTime, Timeout: dialTimeout}),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(frameCodec{}), grpc.MaxCallRecvMsgSize(maxChunk+headerSize)))
	if err != nil {
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
	if err != nil {
		l.end(err)
		cancel()
		_ = conn.Close()
		return nil, err
	}
	end := make(chan error, 1)
	n.background.Go(func() {
		err := l.run()
		if n.open.Err() == nil && !errors.Is(err, errSuperseded) {
			n.log.Info("lost the connection to an agent; reconnecting", zap.Int("peer", p.id), zap.Error(err))
		}
		cancel()
		_ = conn.Close()
		end <- err
	})
	return end, nil
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
