// Package fewbits has numbers of a few bits, to which compressors round.
package fewbits

import "math"

// Set is the numbers that codes of a few bits stand for.
type Set interface {
	Bits() int
	Top() float64 // The largest number.
	// Nearest rounds a number to one that a code stands for.
	Nearest(x float64) float64
	Code(x float64) uint64 // The code of a number that Nearest returned.
	Value(code uint64) float64
	// Delta is the contraction of m numbers, the largest of which is Top.
	Delta(m int) float64
}

// Whole is the whole numbers of b bits with a sign, without the lowest one.
type Whole struct{ B int }

func (d Whole) Bits() int    { return d.B }
func (d Whole) Top() float64 { return float64(int(1)<<(d.B-1) - 1) }

func (d Whole) Nearest(x float64) float64 {
	return math.Max(-d.Top(), math.Min(d.Top(), math.RoundToEven(x))) + 0 // no negative zero
}

func (d Whole) Code(x float64) uint64     { return uint64(int64(x) + int64(d.Top())) }
func (d Whole) Value(code uint64) float64 { return float64(code) - d.Top() }

// Delta follows from the errors of all coordinates but the largest, which are at most half a unit
// and at most the coordinate.
func (d Whole) Delta(m int) float64 {
	most := float64(4 * d.Top() * d.Top())
	return most / (most + float64(m-1))
}

// E4M3 is the finite numbers of the format of eight bits with four of them for the exponent.
type E4M3 struct{}

const (
	e4m3Top   = 448.0
	e4m3Least = 1.0 / 512 // The distance of numbers below 2^-6.
)

func (E4M3) Bits() int    { return 8 }
func (E4M3) Top() float64 { return e4m3Top }

func (E4M3) Nearest(x float64) float64 {
	_, exponent := math.Frexp(x) // |x| in [2^(exponent-1), 2^exponent)
	unit := math.Max(e4m3Least, math.Ldexp(1, exponent-4))
	return math.Max(-e4m3Top, math.Min(e4m3Top, math.RoundToEven(x/unit)*unit)) + 0
}

func (E4M3) Code(x float64) (code uint64) {
	if x < 0 {
		code, x = 1<<7, -x
	}
	if x < 8*e4m3Least {
		return code | uint64(x/e4m3Least)
	}
	fraction, exponent := math.Frexp(x)
	return code | uint64(exponent+6)<<3 | uint64(16*fraction)&7
}

func (E4M3) Value(code uint64) float64 {
	exponent, x := int(code>>3&15), float64(code&7)
	if exponent > 0 {
		x = math.Ldexp(8+x, exponent-1)
	}
	if x *= e4m3Least; code>>7 == 1 {
		x = -x
	}
	return x + 0
}

// Delta follows from the relative error of 1/16, and from numbers below half of the least one.
func (E4M3) Delta(m int) float64 {
	small := e4m3Least / 2 / e4m3Top
	return 1 - 1.0/256 - float64(float64(m)*small*small)
}
