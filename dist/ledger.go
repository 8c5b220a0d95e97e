package dist

import (
	"cmp"
	"fmt"
	"math/bits"
)

// Accounting is a way to count the bits of mask indices. In all of them a message is counted once,
// at its sender, and only one end of an edge sends the indices.
type Accounting string

const (
	SharedSeed Accounting = "shared-seed" // both ends derive the mask: no index is sent
	Packed     Accounting = "packed"      // ceil(log2 d) bits for each index
	Reference  Accounting = "reference"   // 64 bits for each index, as published curves count
)

// Accountings lists the names of the accountings.
func Accountings() []string { return []string{string(SharedSeed), string(Packed), string(Reference)} }

// Sent describes one message for the Ledger.
type Sent struct {
	Values    int // numbers in the message, of all its vectors together
	ValueBits int // bits of each: 32 for float32
	ExtraBits int // everything that is neither a value nor an index, such as norms

	Mask int // coordinates of the mask; the vectors share it
	Dim  int // length of the vector it is taken from; a mask of Dim coordinates needs no indices
	// IndexBits is the packed size of all indices, where they count within blocks; 0: they count
	// within the vector
	IndexBits int
	Whole     int // coordinates of the mask that need no index, since they are in blocks that are sent whole

	// Indices says that this message carries the indices in accountings that send them: over a
	// bidirectional edge the one from the higher-numbered end, and every unidirectional message.
	Indices bool
	// DataDependent says that no seed can replace the indices, as for top-k: packed indices then
	// also count in the shared-seed accounting.
	DataDependent bool
}

// Ledger counts the bits that one agent has sent, in all accounting methods. The zero Ledger is
// empty. It is plain data for checkpoints and belongs to one goroutine.
type Ledger struct {
	Messages   uint64 `json:"messages" yaml:"messages"`
	SharedSeed uint64 `json:"shared_seed_bits" yaml:"shared_seed_bits"`
	Packed     uint64 `json:"packed_bits" yaml:"packed_bits"`
	Reference  uint64 `json:"reference_bits" yaml:"reference_bits"`
	Overhead   uint64 `json:"overhead_bits" yaml:"overhead_bits"` // handshakes, seeds, counters; not part of the above
	WireBytes  uint64 `json:"wire_bytes" yaml:"wire_bytes"`       // bytes that the transport has sent
}

// Send adds one message.
func (l *Ledger) Send(m Sent) {
	if m.Values < 0 || m.ValueBits < 0 || m.ExtraBits < 0 || m.Mask < 0 || m.Mask > m.Dim ||
		m.Whole < 0 || m.Whole > m.Mask {
		panic(fmt.Sprintf("dist: Ledger.Send of an impossible message %+v", m))
	}
	payload := uint64(m.Values)*uint64(m.ValueBits) + uint64(m.ExtraBits)
	var packed, reference uint64
	if m.Indices && m.Mask < m.Dim {
		packed = uint64(cmp.Or(m.IndexBits, m.Mask*IndexBits(m.Dim)))
		reference = uint64(m.Mask-m.Whole) * 64
	}
	l.Messages++
	l.SharedSeed += payload
	if m.DataDependent {
		l.SharedSeed += packed
	}
	l.Packed += payload + packed
	l.Reference += payload + reference
}

// Bits returns the payload in one accounting. It panics for an unknown accounting.
func (l Ledger) Bits(a Accounting) uint64 {
	switch a {
	case SharedSeed:
		return l.SharedSeed
	case Packed:
		return l.Packed
	case Reference:
		return l.Reference
	}
	panic(fmt.Sprintf("dist: no accounting of bits is named %q", a))
}

// IndexBits returns ceil(log2 d), the bits that number d >= 1 coordinates: 17 for d = 79510.
func IndexBits(d int) int { return bits.Len(uint(d - 1)) }
