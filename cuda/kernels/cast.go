package kernels

import (
	"encoding/binary"
	"math"
)

var _ = define("cast.cu", "scaler_step s:p growth:f backoff:f largest:f interval:u",
	"zero_if_inf g:p scaler:p n:l", "scaled_sum y:p a:p b:p by_a:p by_b:p p:f q:f n:l")

var _ = defineEach("cast.cu", halfElements,
	"narrow_segments_%s dst:p src:p segments:p",
	"pad_%s dst:p src:p rows:l c:i padded:i",
	"crop_%s dst:p src:p rows:l c:i padded:i",
	"narrow_%s dst:p src:p n:l",
	"widen_%s dst:p src:p n:l",
)

// ScalerBytes is the size of a Scaler in device memory.
const ScalerBytes = 20

// Scaler is the state of a dynamic loss scale. It lives on the device, so that nothing waits for
// it. The gradient of the loss is multiplied by Scale; updates divide by it.
type Scaler struct {
	Scale   float32
	Found   bool // a gradient of this iteration is not finite
	Good    int  // iterations since the scale last changed
	Skipped int  // iterations without an update
}

// Bytes returns the Scaler in the layout of device memory.
func (s Scaler) Bytes() []byte {
	found := uint32(0)
	if s.Found {
		found = 1
	}
	var b []byte
	for _, v := range []uint32{math.Float32bits(s.Scale), math.Float32bits(1 / s.Scale), found, uint32(s.Good),
		uint32(s.Skipped)} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return b
}

// ReadScaler decodes a Scaler from the layout of device memory.
func ReadScaler(b []byte) Scaler {
	at := func(i int) uint32 { return binary.LittleEndian.Uint32(b[4*i:]) }
	return Scaler{Scale: math.Float32frombits(at(0)), Found: at(2) != 0, Good: int(at(3)), Skipped: int(at(4))}
}

// eights returns the geometry of one thread per eight numbers.
func eights(n int) Launch { return over((n + 7) / 8) }

// Narrow rounds n float32 numbers to a 16-bit element, multiplied by the scale of a Scaler if
// scaler is not 0. It is applied to the gradient of the loss, where a backward pass begins.
func Narrow(e Element, dst, src Address, n int) Call {
	return call(e.name("narrow"), eights(n), dst, src, n)
}

// Widen converts n 16-bit numbers to float32, divided by the scale of a Scaler if scaler is not 0.
// It is applied to the final gradients. If Check has found a non-finite number the result is 0, so
// that an update leaves the parameters unchanged.
func Widen(e Element, dst, src Address, n int) Call {
	return call(e.name("widen"), eights(n), dst, src, n)
}

// ScalerStep updates the scale at the end of an iteration: it is multiplied by backoff if a
// non-finite number was found, and by growth, up to largest, after interval iterations without one.
// PyTorch uses 2, 0.5 and 2000.
func ScalerStep(scaler Address, growth, backoff, largest float32, interval int) Call {
	return call("scaler_step", blocks(1, 32), scaler, growth, backoff, largest, interval)
}

// Segment is a part of a float32 vector that NarrowSegments rounds: N numbers from offset From on,
// in rows of C, to rows of Padded numbers from offset To on.
type Segment struct{ From, To, N, C, Padded int }

// maxSegment is about the number of numbers that a block rounds.
const maxSegment = 8192

// Split divides a segment into segments of whole rows, one per block.
func (s Segment) Split() []Segment {
	each := max(1, maxSegment/s.C) * s.C
	var all []Segment
	for at := 0; at < s.N; at += each {
		all = append(all, Segment{From: s.From + at, To: s.To + at/s.C*s.Padded, N: min(each, s.N-at), C: s.C,
			Padded: s.Padded})
	}
	return all
}

// AppendTo appends the segment in the layout of device memory.
func (s Segment) AppendTo(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(s.From))
	b = binary.LittleEndian.AppendUint64(b, uint64(s.To))
	for _, v := range []int{s.N, s.C, s.Padded, 0} {
		b = binary.LittleEndian.AppendUint32(b, uint32(v))
	}
	return b
}

// NarrowSegments rounds the segments of a vector, listed in device memory, to 16 bits. Padding
// becomes 0.
func NarrowSegments(e Element, dst, src, segments Address, count int) Call {
	return call(e.name("narrow_segments"), blocks(count*threads, threads), dst, src, segments)
}

// Pad rounds rows of c numbers to rows of padded 16-bit numbers, with zeros at the end: images for
// convolutions that need more channels.
func Pad(e Element, dst, src Address, rows, c, padded int) Call {
	return call(e.name("pad"), over(rows*padded), dst, src, rows, c, padded)
}

// Crop converts the first c numbers of rows of padded 16-bit numbers to float32.
func Crop(e Element, dst, src Address, rows, c, padded int) Call {
	return call(e.name("crop"), over(rows*c), dst, src, rows, c, padded)
}

// ZeroIfInf sets a gradient to zero if the Scaler has found a non-finite number.
func ZeroIfInf(g, scaler Address, n int) Call { return call("zero_if_inf", eights(n), g, scaler, n) }

// ScaledSum computes y = (p·*byA)·a + (q·*byB)·b for n float32 numbers. byA and byB are numbers on
// the device, or 0 for 1: a loss scale that only one of the summands has. y may be a or b.
func ScaledSum(y, a, b, byA, byB Address, p, q float32, n int) Call {
	return call("scaled_sum", over(n), y, a, b, byA, byB, p, q, n)
}
