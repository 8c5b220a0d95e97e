package nats

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
)

// Version is that of the protocol. Nodes of different versions refuse each other.
const Version = 3

// A frame is what one NATS message holds: a header, and a piece of a body. All numbers are
// little-endian.
//
//	 0  magic "FSPW"       4  version, kind, flags, stream, a byte each
//	 8  from, to           uint32 each
//	16  run                uint64, a hash of its name
//	24  life               uint64, drawn by the sender's process
//	32  seq                uint64, number of the message in its line
//	40  t                  uint64, its iteration; of a talk, and of an acknowledgement, which talk it is
//	48  total, raw         uint32 each: bytes of the whole body, as sent and unpacked
//	56  offset             uint32, of this piece
//	60  checksum           uint32, CRC-32C of all but itself, and but the piece where the flags say so
//	64  got, stable        uint64 each: see ack.go, of the line of exchanges that leads back
const headerSize = 80

const magic = "FSPW"

type frameKind uint8

const (
	kindHello  frameKind = iota + 1 // who I am and where I stand
	kindRefuse                      // why you are none of us
	kindData                        // a piece of a message
	kindAck                         // how far I am with your messages; also a sign of life
	kindWant                        // send again, message seq from byte offset on
	kindIdle                        // exchanges that I have given up
	kindLast
)

// The streams of a line are numbered each by itself.
const (
	exchanges = iota // what the algorithm says
	reports          // what the run says: snapshots, the end
	talks            // what lasts as long as both processes: see talk.go
	streams
)

// kept is the number of streams that outlive a process.
const kept = talks

const (
	flagPacked  = 1 // the body is compressed
	flagGuarded = 2 // the connection guards the piece, which the checksum leaves out
	flagSealed  = 4 // a seal follows, and guards the piece: see seal.go
)

// frame is a decoded one. The piece is a part of the bytes it was decoded from.
type frame struct {
	kind        frameKind
	flags       uint8
	stream      uint8
	from, to    uint32
	run, life   uint64
	seq, t      uint64
	total, raw  uint32
	offset      uint32
	got, stable uint64
	piece       []byte
	all         []byte // of a sealed frame: what the seal is about, and the seal
}

// FrameError reports bytes that are no frame of this protocol.
type FrameError struct{ Got string }

func (e *FrameError) Error() string { return "nats: a frame was dropped: " + e.Got }

// errVersion marks a frame of another version of the protocol.
var errVersion = errors.New("nats: another version of the protocol")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendFrame appends f as bytes, but for the seal.
func appendFrame(dst []byte, f *frame) []byte { return append(appendHeader(dst, f), f.piece...) }

// appendHeader appends what stands before the piece.
func appendHeader(dst []byte, f *frame) []byte {
	at := len(dst)
	dst = append(dst, magic...)
	dst = append(dst, Version, byte(f.kind), f.flags, f.stream)
	le := binary.LittleEndian
	dst = le.AppendUint32(dst, f.from)
	dst = le.AppendUint32(dst, f.to)
	for _, v := range [...]uint64{f.run, f.life, f.seq, f.t} {
		dst = le.AppendUint64(dst, v)
	}
	for _, v := range [...]uint32{f.total, f.raw, f.offset, 0} {
		dst = le.AppendUint32(dst, v)
	}
	dst = le.AppendUint64(dst, f.got)
	dst = le.AppendUint64(dst, f.stable)
	c := checksum(dst[at:])
	if f.flags&(flagGuarded|flagSealed) == 0 {
		c = crc32.Update(c, castagnoli, f.piece)
	}
	le.PutUint32(dst[at+60:], c)
	return dst
}

// checksum is that of a header, whatever stands in the place of the checksum. That of the piece
// goes on from it.
func checksum(header []byte) uint32 {
	return crc32.Update(crc32.Update(0, castagnoli, header[:60]), castagnoli, header[64:headerSize])
}

// decodeFrame reads a frame. It takes no memory: the piece stays where it is.
func decodeFrame(b []byte) (f frame, err error) {
	f, sum, err := decodeHeader(b)
	if err != nil {
		return f, err
	}
	if f.flags&flagGuarded != 0 {
		return f, &FrameError{Got: "a piece without a checksum that came over NATS"}
	}
	got := checksum(b)
	if f.piece = b[headerSize:]; f.flags&flagSealed == 0 {
		got = crc32.Update(got, castagnoli, f.piece)
	} else if len(f.piece) < sealSize {
		return f, &FrameError{Got: fmt.Sprintf("a sealed frame of %d bytes, in which there is no room for a seal",
			len(b))}
	} else {
		f.piece, f.all = f.piece[:len(f.piece)-sealSize], b
	}
	if err := compare(got, sum); err != nil {
		return f, err
	}
	return f, f.check(len(f.piece))
}

// compare compares a checksum with that in the header.
func compare(got, sum uint32) error {
	if got != sum {
		return &FrameError{Got: fmt.Sprintf("checksum %08x, its header says %08x", got, sum)}
	}
	return nil
}

// decodeHeader reads what stands before the piece, and the checksum that the whole should have.
// Nothing of it is checked but that it begins as a frame.
func decodeHeader(b []byte) (f frame, sum uint32, err error) {
	if len(b) < headerSize || string(b[:4]) != magic {
		return f, 0, &FrameError{Got: fmt.Sprintf("%d bytes that do not begin as one", len(b))}
	}
	if b[4] != Version {
		return f, 0, fmt.Errorf("%w: %d there, %d here", errVersion, b[4], Version)
	}
	le := binary.LittleEndian
	return frame{kind: frameKind(b[5]), flags: b[6], stream: b[7], from: le.Uint32(b[8:]), to: le.Uint32(b[12:]),
		run: le.Uint64(b[16:]), life: le.Uint64(b[24:]), seq: le.Uint64(b[32:]), t: le.Uint64(b[40:]),
		total: le.Uint32(b[48:]), raw: le.Uint32(b[52:]), offset: le.Uint32(b[56:]),
		got: le.Uint64(b[64:]), stable: le.Uint64(b[72:])}, le.Uint32(b[60:]), nil
}

// check refuses what no sender of this version writes, in a frame with a piece of so many bytes.
func (f *frame) check(size int) error {
	switch {
	case f.kind == 0 || f.kind >= kindLast:
		return &FrameError{Got: fmt.Sprintf("kind %d does not exist", f.kind)}
	case f.flags&^(flagPacked|flagGuarded|flagSealed) != 0:
		return &FrameError{Got: fmt.Sprintf("flags %#x do not exist", f.flags)}
	case f.stream >= streams:
		return &FrameError{Got: fmt.Sprintf("stream %d does not exist", f.stream)}
	case f.t > math.MaxInt64:
		return &FrameError{Got: fmt.Sprintf("iteration %d is out of range", f.t)}
	case f.kind == kindData && uint64(f.offset)+uint64(size) > uint64(f.total):
		return &FrameError{Got: fmt.Sprintf("a piece of %d bytes at %d of %d", size, f.offset, f.total)}
	case f.flags&flagPacked == 0 && f.raw != f.total:
		return &FrameError{Got: fmt.Sprintf("%d bytes that are not packed unpack to %d", f.total, f.raw)}
	}
	return nil
}
