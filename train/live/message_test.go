package live

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"fspda/dist"
)

var someLetters = []message{
	{kind: hello, flags: flagAnswer | flagFresh, epoch: 2, n: 7, t: 30, gradientTime: time.Millisecond},
	{kind: state, epoch: 1, n: 3, values: []float32{1.2345678, -2, 3e-9}},
	{kind: model, t: 4, values: []float32{1, 2, 3.1415927}, buffers: []float32{0.1}},
	{kind: offer, call: 5, epoch: 1, n: 3, t: 9, values: []float32{1.5, -0.25}},
	{kind: values, call: 5, epoch: 1, n: 4, t: 9, values: []float32{0.5, 2}},
	{kind: cancel, call: 6},
}

// Decoding inverts encoding, for values in every format that the format represents exactly; duals
// and models keep all their bits.
func TestMessageRoundTrip(t *testing.T) {
	for _, wire := range []dist.ValueFormat{dist.FP32, dist.FP16, dist.BF16} {
		for _, l := range someLetters {
			back, bad := decodeMessage(l.encode(wire), limits{dim: 3, buffers: 1, until: 100, wire: wire})
			if bad != "" || !reflect.DeepEqual(back, l) {
				t.Errorf("%s %v: %+v, %s", wire, l.kind, back, bad)
			}
		}
	}
	if b := someLetters[3].encode(dist.FP16); len(b) != headerSize+4 {
		t.Errorf("two values in fp16 take %d bytes", len(b)-headerSize)
	}
	if _, bad := decodeMessage(someLetters[3].encode(dist.FP16), limits{dim: 3, until: 100}); !strings.Contains(bad,
		"vectors of 2") {
		t.Errorf("a message of another format was accepted: %q", bad)
	}
}

// Any bytes from the network are decoded to a valid message or refused, without allocating more
// memory than their length.
func FuzzMessage(f *testing.F) {
	for i, l := range someLetters {
		f.Add(l.encode(dist.FP32), byte(0))
		f.Add(l.encode(dist.BF16), byte(i))
	}
	f.Fuzz(func(t *testing.T, b []byte, format byte) {
		wire := []dist.ValueFormat{dist.FP32, dist.FP16, dist.BF16}[format%3]
		l, bad := decodeMessage(b, limits{dim: 50, buffers: 3, until: 100, wire: wire})
		if bad != "" {
			return
		}
		if 2*len(l.values)+4*len(l.buffers) > len(b) {
			t.Errorf("%d bytes make %d and %d numbers", len(b), len(l.values), len(l.buffers))
		}
		for _, v := range l.values {
			if v != v {
				return // NaNs need not be encoded as they were
			}
		}
		if again := l.encode(wire); !bytes.Equal(again, b) {
			t.Errorf("%x is decoded, and encoded as %x", b, again)
		}
	})
}

// With 16-bit values the agents converge as closely as the format allows, and the duals sum to
// zero.
func TestConvergesWith16BitValues(t *testing.T) {
	for _, wire := range []dist.ValueFormat{dist.FP16, dist.BF16} {
		t.Run(string(wire), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newTestNetwork(t, 4, 2500)
				l.format = wire
				for i := range 4 {
					l.start(i)
				}
				l.finish()
				l.check(0.6, upTo(4)...)
			})
		})
	}
}
