package bare

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"

	"fspda/bench/measure"
)

// GRPC measures gRPC itself: a bidirectional stream of raw bytes in messages of 1 MB with
// windows of 32 MB. Each end sends from and receives into preallocated memory.
func GRPC() measure.Wire { return grpcWire("bare gRPC stream", streamConfig{}) }

// TunedGRPC is GRPC with larger read and write buffers, as in the links of the agents.
func TunedGRPC() measure.Wire {
	return grpcWire("bare gRPC stream, large buffers", streamConfig{buffer: 256 << 10})
}

// SecureGRPC is GRPC over mutual TLS.
func SecureGRPC(server, client *tls.Config) measure.Wire {
	return grpcWire("bare gRPC stream, TLS", streamConfig{server: server, client: client})
}

// RemoteGRPC is GRPC to another process. open starts a process that calls [ServeGRPC], and
// returns its address.
func RemoteGRPC(open func(ctx context.Context, size int) (address string, end func(), err error)) measure.Wire {
	return streamWire("bare gRPC stream, two processes", streamConfig{}, open)
}

// ServeGRPC serves the remote end of RemoteGRPC until stop is called.
func ServeGRPC(size int) (address string, stop func(), err error) { return streamConfig{}.serve(size) }

type streamConfig struct {
	buffer         int         // read and write buffer in bytes; 0 is the default of gRPC
	server, client *tls.Config // nil: no TLS
}

func grpcWire(name string, b streamConfig) measure.Wire {
	return streamWire(name, b, func(_ context.Context, size int) (string, func(), error) { return b.serve(size) })
}

// streamWire connects to the server that open starts.
func streamWire(name string, b streamConfig,
	open func(ctx context.Context, size int) (address string, end func(), err error)) measure.Wire {
	return measure.Wire{Name: name, Open: func(ctx context.Context, size int) (func() error, func(), error) {
		address, end, err := open(ctx, size)
		if err != nil {
			return nil, nil, err
		}
		swap, closeConn, err := b.dial(ctx, address, size)
		if err != nil {
			end()
			return nil, nil, err
		}
		return swap, func() { closeConn(); end() }, nil
	}}
}

const (
	piece  = 1 << 20
	window = 32 << 20
)

// rawBytes is a gRPC codec that passes bytes through.
type rawBytes struct{}

func (rawBytes) Name() string { return "raw" }

func (rawBytes) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

func (rawBytes) Unmarshal(data mem.BufferSlice, v any) error {
	to := v.(*[]byte)
	if data.Len() > len(*to) {
		return fmt.Errorf("bare: received %d bytes, want at most %d", data.Len(), len(*to))
	}
	*to = (*to)[data.CopyTo(*to):]
	return nil
}

var streamDesc = grpc.StreamDesc{StreamName: "Swap", ClientStreams: true, ServerStreams: true}

// serve accepts streams and sends as many bytes as it receives.
func (b streamConfig) serve(size int) (address string, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	o := []grpc.ServerOption{grpc.ForceServerCodecV2(rawBytes{}), grpc.MaxRecvMsgSize(piece),
		grpc.InitialWindowSize(window), grpc.InitialConnWindowSize(window)}
	if b.buffer > 0 {
		o = append(o, grpc.ReadBufferSize(b.buffer), grpc.WriteBufferSize(b.buffer))
	}
	if b.server != nil {
		o = append(o, grpc.Creds(credentials.NewTLS(b.server.Clone())))
	}
	s := grpc.NewServer(o...)
	desc := streamDesc
	desc.Handler = func(_ any, s grpc.ServerStream) error {
		for e := newStreamEnd(s, size); ; {
			if err := e.swap(); err != nil {
				return nil // the client has closed the stream
			}
		}
	}
	s.RegisterService(&grpc.ServiceDesc{ServiceName: "fspda.Bare", HandlerType: (*any)(nil),
		Streams: []grpc.StreamDesc{desc}}, nil)
	go func() { _ = s.Serve(l) }()
	return l.Addr().String(), s.Stop, nil
}

func (b streamConfig) dial(ctx context.Context, address string, size int) (swap func() error, closeConn func(),
	err error) {
	by := insecure.NewCredentials()
	if b.client != nil {
		by = credentials.NewTLS(b.client.Clone())
	}
	o := []grpc.DialOption{grpc.WithTransportCredentials(by), grpc.WithInitialWindowSize(window),
		grpc.WithInitialConnWindowSize(window)}
	if b.buffer > 0 {
		o = append(o, grpc.WithReadBufferSize(b.buffer), grpc.WithWriteBufferSize(b.buffer))
	}
	c, err := grpc.NewClient("passthrough:///"+address, o...)
	if err != nil {
		return nil, nil, err
	}
	stream, err := c.NewStream(ctx, &streamDesc, "/fspda.Bare/Swap", grpc.ForceCodecV2(rawBytes{}),
		grpc.MaxCallRecvMsgSize(piece))
	if err != nil {
		_ = c.Close()
		return nil, nil, err
	}
	return newStreamEnd(stream, size).swap, func() { _ = c.Close() }, nil
}

type messageStream interface {
	SendMsg(any) error
	RecvMsg(any) error
}

type streamEnd struct {
	stream        messageStream
	own, received []byte
	sent          chan error
}

func newStreamEnd(s messageStream, size int) *streamEnd {
	return &streamEnd{stream: s, own: make([]byte, size), received: make([]byte, size), sent: make(chan error, 1)}
}

// swap sends and receives concurrently.
func (e *streamEnd) swap() error {
	go func() { e.sent <- e.send() }()
	for to := e.received; len(to) > 0; {
		if err := e.stream.RecvMsg(&to); err != nil {
			return err
		}
	}
	return <-e.sent
}

func (e *streamEnd) send() error {
	for own := e.own; len(own) > 0; {
		n := min(piece, len(own))
		if err := e.stream.SendMsg(own[:n]); err != nil {
			return err
		}
		own = own[n:]
	}
	return nil
}
