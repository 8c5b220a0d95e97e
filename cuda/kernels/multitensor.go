package kernels

import (
	"encoding/binary"
	"math"
)

var _ = define("multitensor.cu",
	"move_averages buffers:p arena:p momentum:p list:p",
	"sum_squares part:p params:p list:p pieces:i",
	"add_penalties out:p start:p part:p list:p penalties:i",
)

var _ = defineEach("multitensor.cu", allElements, "finish_gradient_%s grads:p arena:p params:p list:p scaler:p")

// Source says where a piece of a gradient is computed.
type Source int32

const (
	InPlace     Source = iota // the piece lies in the gradient vector
	FromFloat32               // the piece lies in the arena, in float32
	FromHalf                  // the piece lies in the arena, in 16 bits
)

// GradPiece is a piece of the gradient for FinishGradient: N numbers at To, from rows of C numbers
// padded to Padded, starting at From, in numbers of the source. Decay times the parameters from
// Weights on is added, unless Weights is negative. Scaled says that the source is multiplied by the
// loss scale.
type GradPiece struct {
	Source            Source
	From, To, Weights int
	N, C, Padded      int
	Scaled            bool
	Decay             float32
}

// maxGradPiece is about the number of numbers of a gradient that a block handles.
const maxGradPiece = 8192

// Split divides a piece into pieces of whole rows, one per block.
func (s GradPiece) Split() []GradPiece {
	each := max(1, maxGradPiece/s.C) * s.C
	if s.C == 1 { // contiguous
		each = maxGradPiece
	}
	var all []GradPiece
	for at := 0; at < s.N; at += each {
		piece := s
		piece.From, piece.To, piece.N = s.From+at/s.C*s.Padded, s.To+at, min(each, s.N-at)
		if s.Weights >= 0 {
			piece.Weights += at
		}
		all = append(all, piece)
	}
	return all
}

// AppendTo appends the piece in the layout of device memory.
func (s GradPiece) AppendTo(b []byte) []byte {
	scaled := 0
	if s.Scaled {
		scaled = 1
	}
	for _, v := range []int{s.From, s.To, s.Weights} {
		b = binary.LittleEndian.AppendUint64(b, uint64(v))
	}
	for _, v := range []int{s.N, s.C, s.Padded, int(s.Source), scaled} {
		b = binary.LittleEndian.AppendUint32(b, uint32(v))
	}
	return binary.LittleEndian.AppendUint32(b, math.Float32bits(s.Decay))
}

// FinishGradient brings the count pieces of a list to their final form. If scaler is not 0, scaled
// pieces are divided by its scale, and it records non-finite numbers.
func FinishGradient(e Element, grads, arena, params, list, scaler Address, count int) Call {
	return call(e.name("finish_gradient"), blocks(count*threads, threads), grads, arena, params, list, scaler)
}

// Move is a buffer of N numbers whose moving average MoveAverages updates with A·x. x lies in the
// arena.
type Move struct {
	X, Buffer, N int
	A            float64
}

// AppendTo appends the move in the layout of device memory.
func (m Move) AppendTo(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(m.X))
	b = binary.LittleEndian.AppendUint64(b, uint64(m.Buffer))
	b = binary.LittleEndian.AppendUint64(b, math.Float64bits(m.A))
	return binary.LittleEndian.AppendUint64(b, uint64(m.N))
}

// MoveAverages is MoveAverage for a list of count buffers.
func MoveAverages(buffers, arena, momentum, list Address, count int) Call {
	return call("move_averages", blocks(count*threads, threads), buffers, arena, momentum, list)
}

// Penalty is a term of a loss: Scale times the sum of squares of N parameters.
type Penalty struct {
	From, N int
	Scale   float64
}

// Penalties is a list of terms in device memory: the ranges whose squares are summed, and the terms
// that they belong to.
type Penalties struct {
	bytes          []byte
	pieces, counts int
}

// NewPenalties builds the list.
func NewPenalties(all []Penalty) Penalties {
	p := Penalties{counts: len(all)}
	var terms []byte
	for _, s := range all {
		parts := DotParts(s.N)
		terms = binary.LittleEndian.AppendUint32(terms, uint32(p.pieces))
		terms = binary.LittleEndian.AppendUint32(terms, uint32(parts))
		terms = binary.LittleEndian.AppendUint64(terms, math.Float64bits(s.Scale))
		for i := range parts {
			p.bytes = binary.LittleEndian.AppendUint64(p.bytes, uint64(s.From+i*dotBlock))
			p.bytes = binary.LittleEndian.AppendUint64(p.bytes, uint64(min(dotBlock, s.N-i*dotBlock)))
		}
		p.pieces += parts
	}
	p.bytes = append(p.bytes, terms...)
	return p
}

// Bytes returns the list in the layout of device memory.
func (p Penalties) Bytes() []byte { return p.bytes }

// PartNumbers returns the size of the scratch in float64 numbers.
func (p Penalties) PartNumbers() int { return p.pieces }

// Add adds the terms to start, one by one, and writes the sum to out, with the bits of a HalfSquare
// and an Add per term.
func (p Penalties) Add(out, start, params, list, part Address) []Call {
	const warps = 4 // the warps of a block of sum_squares
	return []Call{
		call("sum_squares", blocks(32*p.pieces, 32*warps), part, params, list, p.pieces),
		call("add_penalties", blocks(threads, threads), out, start, part, list+16*Address(p.pieces), p.counts),
	}
}
