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
	{kind: hello, flags: flagAnswer | flagFresh, epoch: 2, n: 7, t: 30, pace: time.Millisecond},
	{kind: state, epoch: 1, n: 3, values: []float32{1.2345678, -2, 3e-9}},
	{kind: model, t: 4, values: []float32{1, 2, 3.1415927}, buffers: []float32{0.1}},
	{kind: offer, call: 5, epoch: 1, n: 3, t: 9, values: []float32{1.5, -0.25}},
	{kind: values, call: 5, epoch: 1, n: 4, t: 9, values: []float32{0.5, 2}},
	{kind: cancel, call: 6},
}

// A letter is read as it was written, in any format of the wire; values that the format has keep
// all their bits, and so do duals and models.
func TestLetterRoundTrip(t *testing.T) {
	for _, wire := range []dist.ValueFormat{dist.FP32, dist.FP16, dist.BF16} {
		for _, l := range someLetters {
			back, bad := readLetter(l.bytes(wire), bounds{dim: 3, buffers: 1, until: 100, wire: wire})
			if bad != "" || !reflect.DeepEqual(back, l) {
				t.Errorf("%s %v: %+v, %s", wire, l.kind, back, bad)
			}
		}
	}
	if b := someLetters[3].bytes(dist.FP16); len(b) != letterHead+4 {
		t.Errorf("two values in fp16 take %d bytes", len(b)-letterHead)
	}
	if _, bad := readLetter(someLetters[3].bytes(dist.FP16), bounds{dim: 3, until: 100}); !strings.Contains(bad,
		"vectors of 2") {
		t.Errorf("a letter of another format was read: %q", bad)
	}
}

// Whatever comes over the network is a letter of the run or is refused, without taking more memory
// than it has bytes.
func FuzzLetter(f *testing.F) {
	for i, l := range someLetters {
		f.Add(l.bytes(dist.FP32), byte(0))
		f.Add(l.bytes(dist.BF16), byte(i))
	}
	f.Fuzz(func(t *testing.T, b []byte, format byte) {
		wire := []dist.ValueFormat{dist.FP32, dist.FP16, dist.BF16}[format%3]
		l, bad := readLetter(b, bounds{dim: 50, buffers: 3, until: 100, wire: wire})
		if bad != "" {
			return
		}
		if 2*len(l.values)+4*len(l.buffers) > len(b) {
			t.Errorf("%d bytes make %d and %d numbers", len(b), len(l.values), len(l.buffers))
		}
		for _, v := range l.values {
			if v != v {
				return // not every not-a-number is written as it was
			}
		}
		if again := l.bytes(wire); !bytes.Equal(again, b) {
			t.Errorf("%x is read, and written as %x", b, again)
		}
	})
}

// Values that travel in half the bits: the agents come as near as those bits allow, and the duals
// sum to zero as ever.
func TestConvergesInHalfTheBits(t *testing.T) {
	for _, wire := range []dist.ValueFormat{dist.FP16, dist.BF16} {
		t.Run(string(wire), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t, 4, 2500)
				l.wire = wire
				for i := range 4 {
					l.start(i)
				}
				l.finish()
				l.check(0.6, upTo(4)...)
			})
		})
	}
}
