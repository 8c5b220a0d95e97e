package tensorboard

import (
	"encoding/binary"
	"fmt"
	"testing"
)

// records extracts the payloads of a file and checks both checksums of each record.
func records(b []byte) (payloads [][]byte, err error) {
	for at := 0; len(b) > 0; {
		if len(b) < 16 {
			return payloads, fmt.Errorf("byte %d: %d bytes left, a record needs 16", at, len(b))
		}
		n := binary.LittleEndian.Uint64(b)
		if binary.LittleEndian.Uint32(b[8:]) != maskedCRC(b[:8]) {
			return payloads, fmt.Errorf("byte %d: checksum of the length is wrong", at)
		}
		if n > uint64(len(b)-16) {
			return payloads, fmt.Errorf("byte %d: record of %d bytes, %d left", at, n, len(b)-16)
		}
		p := b[12 : 12+n]
		if binary.LittleEndian.Uint32(b[12+n:]) != maskedCRC(p) {
			return payloads, fmt.Errorf("byte %d: checksum of the payload is wrong", at)
		}
		payloads = append(payloads, p)
		b = b[16+n:]
		at += 16 + int(n)
	}
	return payloads, nil
}

// The CRC-32C of "123456789" is 0xe3069283 (RFC 3720 uses the same polynomial); masking is undone
// here step by step.
func TestMaskedCRC(t *testing.T) {
	rotated := maskedCRC([]byte("123456789")) - 0xa282ead8
	if crc := rotated>>17 | rotated<<15; crc != 0xe3069283 {
		t.Errorf("CRC %08x, want e3069283", crc)
	}
}

func TestRecords(t *testing.T) {
	var b []byte
	for _, p := range []string{"", "a", "some more"} {
		b = appendRecord(b, []byte(p))
	}
	got, err := records(b)
	if err != nil || len(got) != 3 || string(got[0]) != "" || string(got[2]) != "some more" {
		t.Errorf("%q, %v", got, err)
	}
	for i := range b { // every single damaged byte is detected
		b[i] ^= 0x10
		if _, err := records(b); err == nil {
			t.Errorf("byte %d is damaged: no error", i)
		}
		b[i] ^= 0x10
	}
}
