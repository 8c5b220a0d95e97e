package nats

import (
	"fmt"

	"google.golang.org/grpc/mem"
)

// frameCodec writes frames to a gRPC stream as they are: no text around them, and a piece is not copied.
type frameCodec struct{}

// outFrame is a frame on its way out: its header, and the piece, which does not change any more.
type outFrame struct{ header, piece []byte }

// inFrame is memory for a frame that comes in. It is used again for the next one.
type inFrame struct{ b []byte }

// Name implements encoding.CodecV2.
func (frameCodec) Name() string { return "fspda" }

// Marshal implements encoding.CodecV2.
func (frameCodec) Marshal(v any) (mem.BufferSlice, error) {
	f, ok := v.(*outFrame)
	if !ok {
		return nil, fmt.Errorf("nats: a stream of frames was given a %T", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(f.header), mem.SliceBuffer(f.piece)}, nil
}

// Unmarshal implements encoding.CodecV2. The length is bounded by the stream's largest message.
func (frameCodec) Unmarshal(data mem.BufferSlice, v any) error {
	f, ok := v.(*inFrame)
	if !ok {
		return fmt.Errorf("nats: a stream of frames was given a %T", v)
	}
	if n := data.Len(); cap(f.b) < n {
		f.b = make([]byte, n)
	} else {
		f.b = f.b[:n]
	}
	data.CopyTo(f.b)
	return nil
}
