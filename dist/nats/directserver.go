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

// directFrom is from how many bytes on a message takes the direct way: below, NATS is as good.
const directFrom = 1 << 20

// directWindow is how many bytes of a stream may be on their way.
const directWindow = 16 << 20

// Door is where a node takes the messages that are too large for NATS: a gRPC server of its own.
// The way there goes one way, from the sender to the door, and carries the same frames. It is a
// faster way and no other protocol: what it loses is asked for again over NATS.
type DirectServer struct {
	Listen    string // HOST:PORT; port 0 is any that is free; "": no door
	Advertise string // host by which others reach it; "": all addresses of this machine that fit Listen
}

// doorSign is what a handshake says of a door.
type directOffer struct {
	Places []string `json:"places"` // HOST:PORT, to be tried in this order
	Token  string   `json:"token"`  // opens the door, as long as the process lives
}

// Bounds of a doorSign.
const (
	maxPlaces = 16
	maxPlace  = 300
)

func (s *directOffer) check() error {
	if s == nil {
		return nil
	}
	if len(s.Places) > maxPlaces || len(s.Token) > maxPlace {
		return &FrameError{Got: fmt.Sprintf("a handshake with %d places for large messages", len(s.Places))}
	}
	for _, p := range s.Places {
		if _, _, err := hostPort(p); err != nil || len(p) > maxPlace {
			return &FrameError{Got: fmt.Sprintf("a handshake with the place %q", clip(p))}
		}
	}
	return nil
}

// door is the open one.
type directServer struct {
	server *grpc.Server
	sign   directOffer
}

// metadata keys of a stream
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

// openDoor starts the server. Credentials are those of the routes.
func (n *Node) openDoor() error {
	host, _, err := hostPort(n.opt.Direct.Listen)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", n.opt.Direct.Listen)
	if err != nil {
		return fmt.Errorf("nats: cannot listen at %s for large messages: %w: is the port taken?", n.opt.Direct.Listen,
			err)
	}
	o := []grpc.ServerOption{grpc.ForceServerCodecV2(frameCodec{}), grpc.MaxRecvMsgSize(maxChunk + headerSize),
		grpc.MaxConcurrentStreams(4), grpc.MaxHeaderListSize(maxHello),
		grpc.InitialWindowSize(directWindow), grpc.InitialConnWindowSize(directWindow), grpc.ReadBufferSize(
			directBuffer), grpc.ConnectionTimeout(dialTime),
		experimental.BufferPool(&arrivals{}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: quietTime, Timeout: dialTime}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: quietTime / 2, PermitWithoutStream: true})}
	if t := n.opt.TLS.Routes; t != nil {
		o = append(o, grpc.Creds(tls.NewTLS(t.Clone())))
	}
	n.door = &directServer{server: grpc.NewServer(o...), sign: directOffer{Token: rand.Text(),
		Places: places(host, n.opt.Direct.Advertise, l.Addr())}}
	n.door.server.RegisterService(&grpc.ServiceDesc{ServiceName: frameService, HandlerType: (*any)(nil),
		Streams: []grpc.StreamDesc{{StreamName: frameStream.StreamName, ClientStreams: true, ServerStreams: true,
			Handler: func(_ any, s grpc.ServerStream) error { return n.enter(s) }}}}, nil)
	n.aside.Go(func() {
		if err := n.door.server.Serve(l); err != nil {
			n.log.Warn("the door for large messages is closed", zap.Error(err))
		}
	})
	return nil
}

// places lists where a listener can be found.
func places(host, advertise string, at net.Addr) []string {
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
		if ip, ok := a.(*net.IPNet); ok && ip.IP.IsGlobalUnicast() && len(out) < maxPlaces-1 {
			out = append(out, net.JoinHostPort(ip.IP.String(), port))
		}
	}
	return append(out, net.JoinHostPort("127.0.0.1", port))
}

// enter is what happens with a stream that comes to the door: after it has shown who it is, its
// frames are handled like all others.
func (n *Node) enter(s grpc.ServerStream) error {
	from, err := n.admit(s.Context())
	if err != nil {
		n.drop("a stream", err)
		return status.Error(codes.PermissionDenied, "not a member of this run")
	}
	if err := s.SendHeader(nil); err != nil { // lets the other end know that it is in
		return err
	}
	for {
		var in inFrame
		if err := s.RecvMsg(&in); err != nil {
			return nil // the other end has left: it will come back, or use NATS
		}
		err := n.direct(from, &in)
		in.free()
		if err != nil {
			n.drop("a stream", err)
			return status.Error(codes.InvalidArgument, "no frame of this run")
		}
	}
}

// direct handles a frame that came over a stream of agent from.
func (n *Node) direct(from int, in *inFrame) error {
	size := in.data.Len()
	if size < headerSize {
		return &FrameError{Got: fmt.Sprintf("%d bytes that do not begin as one", size)}
	}
	var header [headerSize]byte
	in.data.CopyTo(header[:])
	f, sum, err := decodeHeader(header[:])
	if err == nil {
		err = f.check(size - headerSize)
	}
	if err == nil && f.flags&flagGuarded != 0 {
		err = compare(checksum(header[:]), sum)
	}
	if err != nil {
		return err
	}
	if f.kind != kindData || int(f.from) != from || f.run != n.run || int(f.to) != n.opt.Self {
		return &FrameError{Got: fmt.Sprintf("kind %d from agent %d to agent %d, over a stream of agent %d", f.kind,
			f.from, f.to, from)}
	}
	n.stats.gotBytes.Add(uint64(size))
	n.stats.gotFrames.Add(1)
	n.stats.direct.Add(1)
	return n.peers[from].pour(&f, header[:], sum, in.data)
}

// pour takes a piece of a message from the memory of gRPC to that of the message, and checks it on
// the way. Before that is done nothing of the frame counts.
func (p *peer) pour(f *frame, header []byte, sum uint32, data mem.BufferSlice) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.settled || f.life != p.life || f.stream == talks && f.t != p.node.talkTag() {
		return nil // of another life
	}
	in := &p.in[f.stream]
	known := in.parcels[f.seq] != nil
	m := in.open(f, data.Len()-headerSize, p.node.codec.limit(), p.node.bodies.get)
	if m == nil {
		if f.seq < in.next {
			in.said = 0 // the sender has not heard that it was taken: say it again
		}
		return nil
	}
	m.pouring = true // nobody else touches its body
	p.mu.Unlock()    // those who send to the peer need not wait for the copy
	body, err := fill(m.body, f, header, sum, data)
	p.mu.Lock()
	m.pouring = false
	if in.parcels[f.seq] != m {
		return nil // of another life by now
	}
	if err != nil {
		if !known {
			delete(in.parcels, f.seq)
		}
		return err
	}
	m.body = body
	in.pieces++
	p.heard = time.Now()
	p.progressed(f)
	if m.whole() {
		p.wake()
	}
	return nil
}

// fill appends the piece of a frame to a body, and checks it.
func fill(body []byte, f *frame, header []byte, sum uint32, data mem.BufferSlice) ([]byte, error) {
	got := checksum(header)
	for skip, b := range skipHeader(data) {
		body = append(body, b[skip:]...)
		if f.flags&flagGuarded == 0 {
			got = crc32.Update(got, castagnoli, b[skip:])
		}
	}
	return body, compare(got, sum)
}

// skipHeader goes through the bytes of a frame, and says for each part how many of the header's are
// left in it.
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

// admit checks who comes to the door: it knows the token, and where there are certificates its own
// says the rank.
func (n *Node) admit(ctx context.Context) (int, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	token, rank := md.Get(tokenKey), md.Get(fromKey)
	if len(token) != 1 || len(rank) != 1 || subtle.ConstantTimeCompare([]byte(token[0]),
		[]byte(n.door.sign.Token)) != 1 {
		return 0, &FrameError{Got: "somebody who does not know the word"}
	}
	from, err := strconv.Atoi(rank[0])
	if err != nil || from < 0 || from >= len(n.peers) || n.peers[from] == nil {
		return 0, &FrameError{Got: fmt.Sprintf("somebody who says that it is agent %q", clip(rank[0]))}
	}
	if n.opt.TLS.Routes == nil {
		return from, nil
	}
	p, ok := caller.FromContext(ctx)
	if !ok {
		return 0, &FrameError{Got: "a stream from nowhere"}
	}
	t, ok := p.AuthInfo.(tls.TLSInfo)
	if !ok {
		return 0, &FrameError{Got: "a stream without a certificate"}
	}
	if who, ok := n.opt.TLS.rankOf(t.State); n.opt.TLS.member != nil && (!ok || who != from) {
		return 0, &FrameError{Got: fmt.Sprintf("agent %d, which says that it is agent %d", who, from)}
	}
	return from, nil
}

// transport is the credentials of a way to agent to.
func (n *Node) transport(to int) tls.TransportCredentials {
	if n.opt.TLS.Routes == nil {
		return insecure.NewCredentials()
	}
	return tls.NewTLS(n.opt.TLS.toMember(to))
}

// guards tells whether a connection to a place changes no bit on its way: it is one of TLS, which
// authenticates every byte, or does not leave the machine.
func (n *Node) guards(place string) bool {
	host, _, err := net.SplitHostPort(place)
	ip := net.ParseIP(host)
	return err == nil && (n.opt.TLS.Routes != nil || ip != nil && ip.IsLoopback())
}

// sign is what the node's handshakes say of its door.
func (n *Node) sign() *directOffer {
	if n.door == nil {
		return nil
	}
	return &n.door.sign
}

// closeDoor ends all that come in.
func (n *Node) closeDoor() {
	if n.door != nil {
		n.door.server.Stop()
	}
}
