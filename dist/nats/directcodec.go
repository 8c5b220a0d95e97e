package nats

import (
	"fmt"

	"google.golang.org/grpc/mem"
)

// frameCodec is a gRPC codec for frames. It adds no encoding and does not copy payloads.
type frameCodec struct{}

// outFrame is an outgoing frame: header and payload. The payload must not change any more.
type outFrame struct {
	header, payload []byte
	memory          *bodyRef // memory that the payload refers to; nil: the payload owns its memory
}

// inFrame is an incoming frame in gRPC's memory. The reader must free it.
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
		return nil, fmt.Errorf("nats: the codec for frames cannot encode a %T", v)
	}
	if f.memory == nil {
		return mem.BufferSlice{mem.SliceBuffer(f.header), mem.SliceBuffer(f.payload)}, nil
	}
	if mem.IsBelowBufferPoolingThreshold(cap(f.payload)) { // gRPC would not call Put
		return mem.BufferSlice{mem.SliceBuffer(append(f.header, f.payload...))}, nil
	}
	f.memory.retain()
	return mem.BufferSlice{mem.SliceBuffer(f.header), mem.NewBuffer(&f.payload, f.memory)}, nil
}

// Unmarshal implements encoding.CodecV2. The stream's maximal message size bounds the length.
func (frameCodec) Unmarshal(data mem.BufferSlice, v any) error {
	f, ok := v.(*inFrame)
	if !ok {
		return fmt.Errorf("nats: the codec for frames cannot decode into a %T", v)
	}
	data.Ref()
	f.data = data
	return nil
}
