package nats

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"hash/crc32"
	"iter"
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
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	caller "google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// minDirectSize is the size in bytes from which a message uses a direct link. Below, NATS is as
// fast.
const minDirectSize = 1 << 20

// directWindow is the flow-control window of a stream in bytes.
const directWindow = 16 << 20

// DirectServer configures the gRPC server to which other nodes send messages that are too large for
// NATS. A link is unidirectional and carries the same frames as NATS. It is an optimisation: what
// it loses is requested again over NATS.
type DirectServer struct {
	Listen    string // HOST:PORT; port 0 is any free one; "": no server
	Advertise string // host under which other nodes reach it; "": all addresses of this machine that fit Listen
}

// directOffer is the part of a handshake that describes a direct server.
type directOffer struct {
	Addresses []string `json:"places"` // HOST:PORT, in the order in which to dial them
	Token     string   `json:"token"`  // authorises a stream, for the lifetime of the process
}

// Bounds of a directOffer.
const (
	maxAddresses  = 16
	maxAddressLen = 300
)

func (s *directOffer) check() error {
	if s == nil {
		return nil
	}
	if len(s.Addresses) > maxAddresses || len(s.Token) > maxAddressLen {
		return &FrameError{Got: fmt.Sprintf("a handshake with %d addresses for direct links", len(s.Addresses))}
	}
	for _, p := range s.Addresses {
		if _, _, err := hostPort(p); err != nil || len(p) > maxAddressLen {
			return &FrameError{Got: fmt.Sprintf("a handshake with the address %q for direct links", clip(p))}
		}
	}
	return nil
}

// directServer is the running server.
type directServer struct {
	server *grpc.Server
	offer  directOffer
}

// Metadata keys of a stream.
const (
	tokenKey = "fspda-token"
	fromKey  = "fspda-from"
)

// frameStream is the method of the service. Its full name is framePath.
var frameStream = grpc.StreamDesc{StreamName: "Frames", ClientStreams: true, ServerStreams: true}

const (
	frameService = "fspda.Direct"
	framePath    = "/fspda.Direct/Frames"
)

// startDirectServer starts the server. Its credentials are those of the routes.
func (n *Node) startDirectServer() error {
	host, _, err := hostPort(n.opt.Direct.Listen)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", n.opt.Direct.Listen)
	if err != nil {
		return fmt.Errorf("nats: cannot listen at %s for direct links: %w: is the port taken?", n.opt.Direct.Listen,
			err)
	}
	o := []grpc.ServerOption{grpc.ForceServerCodecV2(frameCodec{}), grpc.MaxRecvMsgSize(maxChunk + headerSize),
		grpc.MaxConcurrentStreams(4), grpc.MaxHeaderListSize(maxHello),
		grpc.InitialWindowSize(directWindow), grpc.InitialConnWindowSize(directWindow), grpc.ReadBufferSize(
			directBuffer), grpc.ConnectionTimeout(dialTimeout),
		experimental.BufferPool(&readBufferPool{}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: keepaliveTime, Timeout: dialTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: keepaliveTime / 2,
			PermitWithoutStream: true})}
	if t := n.opt.TLS.Routes; t != nil {
		o = append(o, grpc.Creds(tls.NewTLS(t.Clone())))
	}
	n.direct = &directServer{server: grpc.NewServer(o...), offer: directOffer{Token: rand.Text(),
		Addresses: listenAddresses(host, n.opt.Direct.Advertise, l.Addr())}}
	n.direct.server.RegisterService(&grpc.ServiceDesc{ServiceName: frameService, HandlerType: (*any)(nil),
		Streams: []grpc.StreamDesc{{StreamName: frameStream.StreamName, ClientStreams: true, ServerStreams: true,
			Handler: func(_ any, s grpc.ServerStream) error { return n.serveStream(s) }}}}, nil)
	n.background.Go(func() {
		if err := n.direct.server.Serve(l); err != nil {
			n.log.Warn("the server for direct links has stopped", zap.Error(err))
		}
	})
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
	return append(out, net.JoinHostPort("127.0.0.1", port))
}

// serveStream authenticates an incoming stream and handles its frames.
func (n *Node) serveStream(s grpc.ServerStream) error {
	from, err := n.authenticateStream(s.Context())
	if err != nil {
		n.dropFrame("a stream", err)
		return status.Error(codes.PermissionDenied, "not an agent of this run")
	}
	if err := s.SendHeader(nil); err != nil { // tells the client that it is accepted
		return err
	}
	for {
		var in inFrame
		if err := s.RecvMsg(&in); err != nil {
			return nil // the client has left: it will reconnect, or use NATS
		}
		err := n.handleDirectFrame(from, &in)
		in.free()
		if err != nil {
			n.dropFrame("a stream", err)
			return status.Error(codes.InvalidArgument, "not a frame of this run")
		}
	}
}

// handleDirectFrame handles a frame that came over a stream of agent from.
func (n *Node) handleDirectFrame(from int, in *inFrame) error {
	size := in.data.Len()
	if size < headerSize {
		return &FrameError{Got: fmt.Sprintf("%d bytes without a frame header", size)}
	}
	var header [headerSize]byte
	in.data.CopyTo(header[:])
	f, sum, err := decodeHeader(header[:])
	if err == nil {
		err = f.check(size - headerSize)
	}
	if err == nil && f.flags&flagTrustedChannel != 0 {
		err = compare(checksum(header[:]), sum)
	}
	if err != nil {
		return err
	}
	if f.kind != kindData || int(f.from) != from || f.run != n.runHash || int(f.to) != n.opt.Self {
		return &FrameError{Got: fmt.Sprintf("kind %d from agent %d to agent %d, over a stream of agent %d", f.kind,
			f.from, f.to, from)}
	}
	n.stats.gotBytes.Add(uint64(size))
	n.stats.gotFrames.Add(1)
	n.stats.direct.Add(1)
	return n.peers[from].receiveFragment(&f, header[:], sum, in.data)
}

// receiveFragment copies a fragment from gRPC's memory to its message and checks it on the way. A
// frame that fails the check has no effect.
func (p *peer) receiveFragment(f *frame, header []byte, sum uint32, data mem.BufferSlice) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.connected || f.incarnation != p.incarnation || f.stream == sessions && f.t != p.node.sessionTag() {
		return nil // of another incarnation
	}
	in := &p.in[f.stream]
	known := in.messages[f.seq] != nil
	m := in.fragmentTarget(f, data.Len()-headerSize, p.node.bodyCodec.limit(), p.node.bodies.get)
	if m == nil {
		if f.seq < in.next {
			in.acked = 0 // the sender has missed the acknowledgement: send it again
		}
		return nil
	}
	m.copying = true // no other goroutine touches its body
	p.mu.Unlock()    // goroutines that send to the peer need not wait for the copy
	body, err := appendFragment(m.body, f, header, sum, data)
	p.mu.Lock()
	m.copying = false
	if in.messages[f.seq] != m {
		return nil // a new incarnation has replaced it meanwhile
	}
	if err != nil {
		if !known {
			delete(in.messages, f.seq)
		}
		return err
	}
	m.body = body
	in.fragments++
	p.lastHeard = time.Now()
	p.updateProgress(f)
	if m.complete() {
		p.notify()
	}
	return nil
}

// appendFragment appends the fragment in a frame to a body and checks it.
func appendFragment(body []byte, f *frame, header []byte, sum uint32, data mem.BufferSlice) ([]byte, error) {
	got := checksum(header)
	for skip, b := range skipHeader(data) {
		body = append(body, b[skip:]...)
		if f.flags&flagTrustedChannel == 0 {
			got = crc32.Update(got, castagnoli, b[skip:])
		}
	}
	return body, compare(got, sum)
}

// skipHeader iterates over the parts of a frame, with the number of bytes at the start of each that
// belong to the header.
func skipHeader(data mem.BufferSlice) iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		left := headerSize
		for _, b := range data {
			skip := min(left, b.Len())
			left -= skip
			if !yield(skip, b.ReadOnlyData()) {
				return
			}
		}
	}
}

// authenticateStream checks the token and, with certificates, the rank of a client. It returns the
// rank.
func (n *Node) authenticateStream(ctx context.Context) (int, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	token, rank := md.Get(tokenKey), md.Get(fromKey)
	if len(token) != 1 || len(rank) != 1 || subtle.ConstantTimeCompare([]byte(token[0]),
		[]byte(n.direct.offer.Token)) != 1 {
		return 0, &FrameError{Got: "a stream with a wrong token"}
	}
	from, err := strconv.Atoi(rank[0])
	if err != nil || from < 0 || from >= len(n.peers) || n.peers[from] == nil {
		return 0, &FrameError{Got: fmt.Sprintf("a stream of a node that claims to be agent %q", clip(rank[0]))}
	}
	if n.opt.TLS.Routes == nil {
		return from, nil
	}
	p, ok := caller.FromContext(ctx)
	if !ok {
		return 0, &FrameError{Got: "a stream without an address"}
	}
	t, ok := p.AuthInfo.(tls.TLSInfo)
	if !ok {
		return 0, &FrameError{Got: "a stream without a certificate"}
	}
	if who, ok := n.opt.TLS.rankOf(t.State); n.opt.TLS.agent != nil && (!ok || who != from) {
		return 0, &FrameError{Got: fmt.Sprintf("a stream of agent %d, which claims to be agent %d", who, from)}
	}
	return from, nil
}

// dialCredentials returns the credentials for a link to agent to.
func (n *Node) dialCredentials(to int) tls.TransportCredentials {
	if n.opt.TLS.Routes == nil {
		return insecure.NewCredentials()
	}
	return tls.NewTLS(n.opt.TLS.routeTo(to))
}

// trustedAddress reports whether a connection to an address delivers bytes unchanged: it uses TLS,
// which authenticates every byte, or does not leave the machine.
func (n *Node) trustedAddress(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && (n.opt.TLS.Routes != nil || ip != nil && ip.IsLoopback())
}

// directOffer returns the description of the direct server for handshakes, nil without one.
func (n *Node) directOffer() *directOffer {
	if n.direct == nil {
		return nil
	}
	return &n.direct.offer
}

// stopDirectServer closes all incoming streams.
func (n *Node) stopDirectServer() {
	if n.direct != nil {
		n.direct.server.Stop()
	}
}
