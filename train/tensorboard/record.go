package tensorboard

import (
	"encoding/binary"
	"hash/crc32"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// maskedCRC is the CRC-32C of b, rotated right by 15 bits and offset by a constant, so that the
// checksum of data that itself holds checksums stays strong (TensorFlow's lib/hash/crc32c.h).
func maskedCRC(b []byte) uint32 {
	c := crc32.Checksum(b, castagnoli)
	return (c>>15 | c<<17) + 0xa282ead8
}

// appendRecord appends the framed payload to dst.
func appendRecord(dst, payload []byte) []byte {
	head := len(dst)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(len(payload)))
	dst = binary.LittleEndian.AppendUint32(dst, maskedCRC(dst[head:]))
	dst = append(dst, payload...)
	return binary.LittleEndian.AppendUint32(dst, maskedCRC(payload))
}
