package nats

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
)

// Version is the version of the protocol. Nodes of different versions refuse each other.
const Version = 3

// A frame is the content of one NATS message: a header and a payload, for data a fragment of a
// message body. All numbers are little-endian.
//
//	 0  magic "FSPW"       4  version, kind, flags, stream, a byte each
//	 8  from, to           uint32 each
//	16  run                uint64, a hash of the run's name
//	24  incarnation        uint64, drawn by the sender's process
//	32  seq                uint64, number of the message in its stream
//	40  t                  uint64, iteration; in sessions and acknowledgements, a tag
//	48  total, raw         uint32 each: bytes of the whole body, as sent and uncompressed
//	56  offset             uint32, of the fragment in the body
//	60  checksum           uint32, CRC-32C of all but itself; see the flags for the payload
//	64  next, stable       uint64 each: acknowledgement of exchanges (see ack.go)
const headerSize = 80

const magic = "FSPW"

type frameKind uint8

const (
	kindHello   frameKind = iota + 1 // handshake: who the sender is and its position in each stream
	kindRefuse                       // the reason why the receiver is refused
	kindData                         // a fragment of a message
	kindAck                          // acknowledgement of the receiver's messages; also a heartbeat
	kindRequest                      // request to send message seq again, from byte offset on
	kindIdle                         // the exchanges that the sender has given up
	kindEnd
)

// The streams between two nodes. Each is numbered separately.
const (
	exchanges = iota // messages of the algorithm
	reports          // reports of the run: snapshots, the end
	sessions         // sessions, which end with either process: see session.go
	numStreams
)

// durableStreams is the number of streams that survive a restart of a process.
const durableStreams = sessions

const (
	flagCompressed     = 1 // the body is compressed
	flagTrustedChannel = 2 // the connection protects the payload; the checksum covers the header only
	flagAuthenticated  = 4 // an authentication tag follows and protects the payload: see auth.go
)

// frame is a decoded frame. The payload aliases the bytes it was decoded from.
type frame struct {
	kind             frameKind
	flags            uint8
	stream           uint8
	from, to         uint32
	run, incarnation uint64
	seq, t           uint64
	total, raw       uint32
	offset           uint32
	next, stable     uint64
	payload          []byte
	whole            []byte // of an authenticated frame: all bytes, including the authentication data
}

// FrameError reports bytes that are not a valid frame of this protocol.
type FrameError struct{ Got string }

func (e *FrameError) Error() string { return "nats: a frame was dropped: " + e.Got }

// errVersion marks a frame of another version of the protocol.
var errVersion = errors.New("nats: another version of the protocol")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendFrame appends the encoding of f, without authentication data.
func appendFrame(dst []byte, f *frame) []byte { return append(appendHeader(dst, f), f.payload...) }

// appendHeader appends the encoding of the header.
func appendHeader(dst []byte, f *frame) []byte {
	at := len(dst)
	dst = append(dst, magic...)
	dst = append(dst, Version, byte(f.kind), f.flags, f.stream)
	le := binary.LittleEndian
	dst = le.AppendUint32(dst, f.from)
	dst = le.AppendUint32(dst, f.to)
	for _, v := range [...]uint64{f.run, f.incarnation, f.seq, f.t} {
		dst = le.AppendUint64(dst, v)
	}
	for _, v := range [...]uint32{f.total, f.raw, f.offset, 0} {
		dst = le.AppendUint32(dst, v)
	}
	dst = le.AppendUint64(dst, f.next)
	dst = le.AppendUint64(dst, f.stable)
	c := checksum(dst[at:])
	if f.flags&(flagTrustedChannel|flagAuthenticated) == 0 {
		c = crc32.Update(c, castagnoli, f.payload)
	}
	le.PutUint32(dst[at+60:], c)
	return dst
}

// checksum returns the checksum of a header, leaving out its checksum field. The checksum of the
// payload continues from it.
func checksum(header []byte) uint32 {
	return crc32.Update(crc32.Update(0, castagnoli, header[:60]), castagnoli, header[64:headerSize])
}

// decodeFrame decodes a frame. It allocates nothing: the payload aliases b.
func decodeFrame(b []byte) (f frame, err error) {
	f, sum, err := decodeHeader(b)
	if err != nil {
		return f, err
	}
	if f.flags&flagTrustedChannel != 0 {
		return f, &FrameError{Got: "a frame over NATS whose payload has no checksum"}
	}
	got := checksum(b)
	if f.payload = b[headerSize:]; f.flags&flagAuthenticated == 0 {
		got = crc32.Update(got, castagnoli, f.payload)
	} else if len(f.payload) < authSize {
		return f, &FrameError{Got: fmt.Sprintf("an authenticated frame of %d bytes, too short for its tag",
			len(b))}
	} else {
		f.payload, f.whole = f.payload[:len(f.payload)-authSize], b
	}
	if err := compare(got, sum); err != nil {
		return f, err
	}
	return f, f.check(len(f.payload))
}

// compare returns an error unless a computed checksum equals the one of the header.
func compare(got, sum uint32) error {
	if got != sum {
		return &FrameError{Got: fmt.Sprintf("checksum %08x, its header says %08x", got, sum)}
	}
	return nil
}

// decodeHeader decodes a header and returns the checksum in it. It validates only the magic number
// and the version.
func decodeHeader(b []byte) (f frame, sum uint32, err error) {
	if len(b) < headerSize || string(b[:4]) != magic {
		return f, 0, &FrameError{Got: fmt.Sprintf("%d bytes without a frame header", len(b))}
	}
	if b[4] != Version {
		return f, 0, fmt.Errorf("%w: the other node uses %d, this one %d", errVersion, b[4], Version)
	}
	le := binary.LittleEndian
	return frame{kind: frameKind(b[5]), flags: b[6], stream: b[7], from: le.Uint32(b[8:]), to: le.Uint32(b[12:]),
		run: le.Uint64(b[16:]), incarnation: le.Uint64(b[24:]), seq: le.Uint64(b[32:]), t: le.Uint64(b[40:]),
		total: le.Uint32(b[48:]), raw: le.Uint32(b[52:]), offset: le.Uint32(b[56:]),
		next: le.Uint64(b[64:]), stable: le.Uint64(b[72:])}, le.Uint32(b[60:]), nil
}

// check returns an error for a header that no sender of this version writes, in a frame whose
// payload has size bytes.
func (f *frame) check(size int) error {
	switch {
	case f.kind == 0 || f.kind >= kindEnd:
		return &FrameError{Got: fmt.Sprintf("kind %d does not exist", f.kind)}
	case f.flags&^(flagCompressed|flagTrustedChannel|flagAuthenticated) != 0:
		return &FrameError{Got: fmt.Sprintf("flags %#x do not exist", f.flags)}
	case f.stream >= numStreams:
		return &FrameError{Got: fmt.Sprintf("stream %d does not exist", f.stream)}
	case f.t > math.MaxInt64:
		return &FrameError{Got: fmt.Sprintf("iteration %d is out of range", f.t)}
	case f.kind == kindData && uint64(f.offset)+uint64(size) > uint64(f.total):
		return &FrameError{Got: fmt.Sprintf("a fragment of %d bytes at offset %d of a message of %d bytes", size,
			f.offset, f.total)}
	case f.flags&flagCompressed == 0 && f.raw != f.total:
		return &FrameError{Got: fmt.Sprintf("an uncompressed body of %d bytes that claims to decompress to %d",
			f.total, f.raw)}
	}
	return nil
}
