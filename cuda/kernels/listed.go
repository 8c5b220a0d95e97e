package kernels

import (
	"encoding/binary"
	"math"
)

var _ = define("listed.cu",
	"move_averages buffers:p arena:p momentum:p list:p",
	"sum_squares part:p params:p list:p pieces:i",
	"add_penalties out:p start:p part:p list:p penalties:i",
)

var _ = defineEach("listed.cu", allElements,
	"end_gradient_%s grads:p arena:p params:p list:p scaler:p",
)

// Source is where a piece of a gradient is computed.
type Source int32

const (
	InPlace Source = iota // in the gradient
	Whole                 // in the arena, as float32
	Short                 // in the arena, in 16 bits
)

// Ending is a piece of the gradient that EndGradient brings to its final form: N numbers at To,
// from rows of C numbers with room for Room, which lie at From, counted in numbers of the source.
// Decay times the parameters from Weights on are added, unless that is negative. Scaled says that
// the source is multiplied by the loss scale.
type Ending struct {
	Source            Source
	From, To, Weights int
	N, C, Room        int
	Scaled            bool
	Decay             float32
}

// mostEnding is about how many numbers of a gradient a block takes.
const mostEnding = 8192

// Split cuts an ending into pieces of whole rows, one for a block each.
func (s Ending) Split() []Ending {
	each := max(1, mostEnding/s.C) * s.C
	if s.C == 1 { // a long row
		each = mostEnding
	}
	var all []Ending
	for at := 0; at < s.N; at += each {
		piece := s
		piece.From, piece.To, piece.N = s.From+at/s.C*s.Room, s.To+at, min(each, s.N-at)
		if s.Weights >= 0 {
			piece.Weights += at
		}
		all = append(all, piece)
	}
	return all
}

// AppendTo appends the ending as it lies in device memory.
func (s Ending) AppendTo(b []byte) []byte {
	scaled := 0
	if s.Scaled {
		scaled = 1
	}
	for _, v := range []int{s.From, s.To, s.Weights} {
		b = binary.LittleEndian.AppendUint64(b, uint64(v))
	}
	for _, v := range []int{s.N, s.C, s.Room, int(s.Source), scaled} {
		b = binary.LittleEndian.AppendUint32(b, uint32(v))
	}
	return binary.LittleEndian.AppendUint32(b, math.Float32bits(s.Decay))
}

// EndGradient ends the pieces of a gradient in a list of so many. scaler may be 0; else it divides
// what is scaled, and is told where a number is not finite.
func EndGradient(e Element, grads, arena, params, list, scaler Address, count int) Call {
	return call(e.name("end_gradient"), blocks(count*threads, threads), grads, arena, params, list, scaler)
}

// Move is a buffer of N numbers that MoveAverages moves towards A·x, where x lies in the arena.
type Move struct {
	X, Buffer, N int
	A            float64
}

// AppendTo appends the move as it lies in device memory.
func (m Move) AppendTo(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(m.X))
	b = binary.LittleEndian.AppendUint64(b, uint64(m.Buffer))
	b = binary.LittleEndian.AppendUint64(b, math.Float64bits(m.A))
	return binary.LittleEndian.AppendUint64(b, uint64(m.N))
}

// MoveAverages is MoveAverage for a list of so many buffers.
func MoveAverages(buffers, arena, momentum, list Address, count int) Call {
	return call("move_averages", blocks(count*threads, threads), buffers, arena, momentum, list)
}

// Penalty is a term of a loss: Scale times the sum of the squares of N parameters.
type Penalty struct {
	From, N int
	Scale   float64
}

// Penalties is a list of terms in device memory: the pieces whose squares are summed, and the terms
// that they belong to.
type Penalties struct {
	bytes          []byte
	pieces, counts int
}

// PenaltiesOf makes the list.
func PenaltiesOf(all []Penalty) Penalties {
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

// Bytes is the list as it lies in device memory.
func (p Penalties) Bytes() []byte { return p.bytes }

// PartNumbers is how many numbers of float64 the scratch has.
func (p Penalties) PartNumbers() int { return p.pieces }

// Add adds the terms to start, one after the other, and writes the sum to out: with the bits of a
// HalfSquare and an Add for each.
func (p Penalties) Add(out, start, params, list, part Address) []Call {
	const warps = 4 // of a block of sum_squares
	return []Call{
		call("sum_squares", blocks(32*p.pieces, 32*warps), part, params, list, p.pieces),
		call("add_penalties", blocks(threads, threads), out, start, part, list+16*Address(p.pieces), p.counts),
	}
}
