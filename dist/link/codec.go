package link

import (
	"fmt"
	"sync"

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

func (f *inFrame) decode() (h header, err error) {
	size := f.data.Len()
	if size < headerSize {
		return h, &FrameError{Got: fmt.Sprintf("%d bytes without a header", size)}
	}
	var b [headerSize]byte
	f.data.CopyTo(b[:])
	return decodeHeader(&b, size-headerSize)
}

func (f *inFrame) appendPayload(dst []byte) []byte {
	left := headerSize
	for _, b := range f.data {
		skip := min(left, b.Len())
		left -= skip
		dst = append(dst, b.ReadOnlyData()[skip:]...)
	}
	return dst
}

func (frameCodec) Name() string { return "fspda" }

func (frameCodec) Marshal(v any) (mem.BufferSlice, error) {
	f, ok := v.(*outFrame)
	if !ok {
		return nil, fmt.Errorf("link: the codec for frames cannot encode a %T", v)
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
		return fmt.Errorf("link: the codec for frames cannot decode into a %T", v)
	}
	data.Ref()
	f.data = data
	return nil
}

// readBufferPool provides gRPC with memory for reading from a connection, one HTTP/2 frame at a
// time. Unlike gRPC's own pool it does not zero the memory, which would take a tenth of the total
// time; reading overwrites it anyway.
type readBufferPool struct{ pool sync.Pool }

// readBufferSize is the size of gRPC's largest read: the largest HTTP/2 frame that it allows.
const readBufferSize = 16 << 10

func (a *readBufferPool) Get(n int) *[]byte {
	if n > readBufferSize {
		b := make([]byte, n)
		return &b
	}
	b, ok := a.pool.Get().(*[]byte)
	if !ok {
		fresh := make([]byte, readBufferSize)
		b = &fresh
	}
	*b = (*b)[:n]
	return b
}

func (a *readBufferPool) Put(b *[]byte) {
	if cap(*b) == readBufferSize {
		a.pool.Put(b)
	}
}
