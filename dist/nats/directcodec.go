package nats

import (
	"fmt"

	"google.golang.org/grpc/mem"
)

// frameCodec writes frames to a gRPC stream as they are: no text around them, and a piece is not
// copied.
type frameCodec struct{}

// outFrame is a frame on its way out: its header, and the piece, which does not change any more.
type outFrame struct {
	header, piece []byte
	lent          *lent // whose memory the piece is; nil: its own
}

// inFrame is a frame that comes in, as its bytes lie in the memory of gRPC. Who has read it lets go
// of it.
type inFrame struct{ data mem.BufferSlice }

func (f *inFrame) free() {
	f.data.Free()
	f.data = nil
}

// Name implements encoding.CodecV2.
func (frameCodec) Name() string { return "fspda" }

// Marshal implements encoding.CodecV2.
func (frameCodec) Marshal(v any) (mem.BufferSlice, error) {
	f, ok := v.(*outFrame)
	if !ok {
		return nil, fmt.Errorf("nats: a stream of frames was given a %T", v)
	}
	if f.lent == nil {
		return mem.BufferSlice{mem.SliceBuffer(f.header), mem.SliceBuffer(f.piece)}, nil
	}
	if mem.IsBelowBufferPoolingThreshold(cap(f.piece)) { // gRPC would not say when it is done with it
		return mem.BufferSlice{mem.SliceBuffer(append(f.header, f.piece...))}, nil
	}
	f.lent.hold()
	return mem.BufferSlice{mem.SliceBuffer(f.header), mem.NewBuffer(&f.piece, f.lent)}, nil
}

// Unmarshal implements encoding.CodecV2. The length is bounded by the stream's largest message.
func (frameCodec) Unmarshal(data mem.BufferSlice, v any) error {
	f, ok := v.(*inFrame)
	if !ok {
		return fmt.Errorf("nats: a stream of frames was given a %T", v)
	}
	data.Ref()
	f.data = data
	return nil
}
