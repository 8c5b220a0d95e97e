package dist

import (
	"fmt"
	"math/bits"
)

// Accounting is a way to count the bits of mask indices. In all of them a message is counted once,
// at its sender, and the indices of an edge are sent by one of its ends only.
type Accounting string

const (
	SharedSeed Accounting = "shared-seed" // both ends derive the mask: no index travels
	Packed     Accounting = "packed"      // ceil(log2 d) bits for each index
	Reference  Accounting = "reference"   // 64 bits for each index: what published curves count
)

// ParseAccounting checks the name of an accounting.
func ParseAccounting(name string) (Accounting, error) {
	switch a := Accounting(name); a {
	case SharedSeed, Packed, Reference:
		return a, nil
	}
	return "", fmt.Errorf("dist: no accounting of bits is named %q; write %s, %s or %s", name, SharedSeed, Packed,
		Reference)
}

// Sent describes one message for the Ledger.
type Sent struct {
	Values    int // numbers in the message, those of all its vectors together
	ValueBits int // bits of each: 32 for float32
	ExtraBits int // norms and the like: what is neither a value nor an index

	Mask int // coordinates of the mask; the vectors share it
	Dim  int // length of the vector it is taken from; a mask of Dim coordinates needs no indices

	// Indices says that this message is the one that would carry the indices: over an edge that is
	// used both ways the one from the higher-numbered end, and every message that goes one way.
	Indices bool
	// DataDependent says that no seed can replace the indices, as those of the largest values:
	// packed indices then count in the shared-seed accounting, too.
	DataDependent bool
}

// Ledger counts what one agent has sent, in bits, in all accountings side by side. The zero Ledger
// is empty. It is plain data for checkpoints and belongs to one goroutine.
type Ledger struct {
	Messages   uint64 `json:"messages" yaml:"messages"`
	SharedSeed uint64 `json:"shared_seed_bits" yaml:"shared_seed_bits"`
	Packed     uint64 `json:"packed_bits" yaml:"packed_bits"`
	Reference  uint64 `json:"reference_bits" yaml:"reference_bits"`
	Overhead   uint64 `json:"overhead_bits" yaml:"overhead_bits"` // handshakes, seeds, counters; in none of the above
	WireBytes  uint64 `json:"wire_bytes" yaml:"wire_bytes"`       // bytes the transport really sent
}

// Send counts one message.
func (l *Ledger) Send(m Sent) {
	if m.Values < 0 || m.ValueBits < 0 || m.ExtraBits < 0 || m.Mask < 0 || m.Mask > m.Dim {
		panic(fmt.Sprintf("dist: Ledger.Send of an impossible message %+v", m))
	}
	payload := uint64(m.Values)*uint64(m.ValueBits) + uint64(m.ExtraBits)
	var packed, reference uint64
	if m.Indices && m.Mask < m.Dim {
		packed = uint64(m.Mask) * uint64(IndexBits(m.Dim))
		reference = uint64(m.Mask) * 64
	}
	l.Messages++
	l.SharedSeed += payload
	if m.DataDependent {
		l.SharedSeed += packed
	}
	l.Packed += payload + packed
	l.Reference += payload + reference
}

// Add adds what another ledger holds.
func (l *Ledger) Add(o Ledger) {
	l.Messages += o.Messages
	l.SharedSeed += o.SharedSeed
	l.Packed += o.Packed
	l.Reference += o.Reference
	l.Overhead += o.Overhead
	l.WireBytes += o.WireBytes
}

// Bits is the payload in one accounting. It panics at an accounting that does not exist.
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

// IndexBits is ceil(log2 d), the bits that number d >= 1 coordinates: 17 for d = 79510.
func IndexBits(d int) int { return bits.Len(uint(d - 1)) }
