package bench

import (
	"context"
	"fmt"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
)

// BareGRPC is a stream in both directions whose messages are bytes and nothing else, in pieces of 1 MB with windows of 32 MB: what gRPC alone does.
// Each end sends from memory that does not change, and copies what arrives to memory that it has.
func BareGRPC() Wire {
	return Wire{Name: "bare gRPC stream", Open: func(ctx context.Context, size int) (func() error, func(), error) { return openBareGRPC(ctx, size, 0) }}
}

// TunedGRPC is BareGRPC with connections that are read and written in larger parts, as those of the agents' direct way are.
func TunedGRPC() Wire {
	return Wire{Name: "bare gRPC stream, large buffers", Open: func(ctx context.Context, size int) (func() error, func(), error) {
		return openBareGRPC(ctx, size, 256<<10)
	}}
}

const (
	barePiece  = 1 << 20
	bareWindow = 32 << 20
)

// rawBytes is the codec.
type rawBytes struct{}

func (rawBytes) Name() string { return "raw" }

func (rawBytes) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

func (rawBytes) Unmarshal(data mem.BufferSlice, v any) error {
	to := v.(*[]byte)
	if data.Len() > len(*to) {
		return fmt.Errorf("bench: %d bytes for %d", data.Len(), len(*to))
	}
	*to = (*to)[data.CopyTo(*to):]
	return nil
}

var bareStream = grpc.StreamDesc{StreamName: "Swap", ClientStreams: true, ServerStreams: true}

// openBareGRPC opens one with connections of such buffers; 0 is what gRPC does by itself.
func openBareGRPC(ctx context.Context, size, buffer int) (swap func() error, end func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	serving := []grpc.ServerOption{grpc.ForceServerCodecV2(rawBytes{}), grpc.MaxRecvMsgSize(barePiece), grpc.InitialWindowSize(bareWindow), grpc.InitialConnWindowSize(bareWindow)}
	dialing := []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithInitialWindowSize(bareWindow), grpc.WithInitialConnWindowSize(bareWindow)}
	if buffer > 0 {
		serving = append(serving, grpc.ReadBufferSize(buffer), grpc.WriteBufferSize(buffer))
		dialing = append(dialing, grpc.WithReadBufferSize(buffer), grpc.WithWriteBufferSize(buffer))
	}
	s := grpc.NewServer(serving...)
	desc := bareStream
	desc.Handler = func(_ any, s grpc.ServerStream) error {
		for e := newBareEnd(s, size); ; {
			if err := e.swap(); err != nil {
				return nil // the other end has left
			}
		}
	}
	s.RegisterService(&grpc.ServiceDesc{ServiceName: "fspda.Bare", HandlerType: (*any)(nil), Streams: []grpc.StreamDesc{desc}}, nil)
	go func() { _ = s.Serve(l) }()
	c, err := grpc.NewClient("passthrough:///"+l.Addr().String(), dialing...)
	if err != nil {
		s.Stop()
		return nil, nil, err
	}
	end = func() { _ = c.Close(); s.Stop() }
	stream, err := c.NewStream(ctx, &bareStream, "/fspda.Bare/Swap", grpc.ForceCodecV2(rawBytes{}), grpc.MaxCallRecvMsgSize(barePiece))
	if err != nil {
		end()
		return nil, nil, err
	}
	return newBareEnd(stream, size).swap, end, nil
}

// bareEnd is one end of the stream.
type bareEnd struct {
	stream interface {
		SendMsg(any) error
		RecvMsg(any) error
	}
	own, heard []byte
	sent       chan error
}

func newBareEnd(s interface {
	SendMsg(any) error
	RecvMsg(any) error
}, size int) *bareEnd {
	return &bareEnd{stream: s, own: make([]byte, size), heard: make([]byte, size), sent: make(chan error, 1)}
}

// swap sends and receives at once.
func (e *bareEnd) swap() error {
	go func() { e.sent <- e.send() }()
	for to := e.heard; len(to) > 0; {
		if err := e.stream.RecvMsg(&to); err != nil {
			return err
		}
	}
	return <-e.sent
}

func (e *bareEnd) send() error {
	for own := e.own; len(own) > 0; {
		n := min(barePiece, len(own))
		if err := e.stream.SendMsg(own[:n]); err != nil {
			return err
		}
		own = own[n:]
	}
	return nil
}
