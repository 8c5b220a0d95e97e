package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"fspda/dist"
	"fspda/internal/rng"
)

// Identity lists the names and values on which all processes of a run must agree, the most
// informative first. The sizes are the lengths of the model's tensors.
func (s *Setup) Identity(sizes []int) [][2]string {
	c := s.Config.Stored()
	c.Params = c.coveredParams()
	layout := sha256.Sum256(fmt.Append(nil, sizes, s.Buffers))
	id := [][2]string{
		{"seed", strconv.FormatUint(c.Seed, 10)},
		{"model layout", fmt.Sprintf("%d parameters, %s", s.Dim, hex.EncodeToString(layout[:6]))},
		{"data", s.Set.Fingerprint()},
		{"random streams", strconv.Itoa(rng.Version)},
		{"simulated links", s.Links.Digest()},
	}
	for _, key := range slices.Sorted(maps.Keys(s.Files)) {
		id = append(id, [2]string{"content of the file of " + key, s.Files[key]})
	}
	for _, f := range c.fields() {
		if !c.inert(f) {
			id = append(id, [2]string{f.Name, f.Text()})
		}
	}
	return id
}

// Codec returns the codec of the run's messages; nil: plain values at coordinates that both ends
// know.
func (s *Setup) Codec() dist.Codec {
	switch {
	case s.Lattice != nil:
		return s.Lattice.Codec(s.VectorsPerLink(), s.Dim)
	case s.Compressor != nil && s.Compressor.Picked() == nil:
		return s.Compressor
	}
	return nil
}

// CodedMessage describes a message of iteration t, with the given number of values on a mask, for
// the ledger.
func (s *Setup) CodedMessage(codec dist.Codec, t, values, mask int) dist.Sent {
	m := dist.Sent{Values: values, ValueBits: 32, Mask: mask, Dim: s.Dim}
	if codec != nil {
		m = codec.Sent(dist.Payload{Dim: s.Dim, T: t})
	}
	m.Indices = true // Each message is counted by itself.
	return m
}

// PublishedMessage describes a message as the released program counts it.
func (s *Setup) PublishedMessage(m dist.Sent) dist.Sent {
	kind, _ := dist.CompressorNamed(string(s.Config.Compress))
	return kind.Published(m)
}
