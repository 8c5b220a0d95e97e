//go:build !windows

package cli

import (
	"fmt"
	"math"
	"slices"
)

// Recursions of rounds whose messages are coded: SparseLoCo, and DiLoCo with numbers of few bits.

// sparseLoCo sends the largest numbers of the chunks of unsent changes to all agents.
func (r *recursion) sparseLoCo() {
	h, side, most := one(r, "local-steps", 2, 4), param(r, "side", 8, 64), param(r, "k", 5, 9)
	bins, keep, rate := param(r, "bins", "fp32", "4", "16"), param(r, "keep", 0.95, 1), param(r, "outer_lr", 1, 0.7)
	inputs := (r.d - r.classes) / r.classes
	tensors := [][]chunk{cut(0, r.classes, inputs, side), cut(r.classes*inputs, 1, r.classes, side)}
	phi, e := slices.Clone(r.x[0]), zeroes(r.n, r.d)
	for t := range r.times(1) {
		if r.x = r.stepAll(nil); (t+1)%h > 0 {
			continue
		}
		sum := make([]float64, r.d)
		for i := range e {
			e[i] = plus(plus(scaled(keep, e[i]), 1, phi), -1, r.x[i])
			q, tie := make([]float64, r.d), r.sentFrom(e[i], t, i)
			for _, chunks := range tensors {
				for _, part := range chunks {
					r.largest(q, e[i], part.at, most, rounding, tie)
				}
				if bins != "fp32" {
					inBins(q, chunks, bins)
				}
			}
			e[i], sum = plus(e[i], -1, q), plus(sum, 1/float64(r.n), q)
		}
		phi = plus(phi, -rate, sum)
		for i := range r.x {
			r.x[i] = slices.Clone(phi)
		}
	}
}

// sentFrom decides as the program did, which sent all of its error before that is not in it now.
func (r *recursion) sentFrom(before []float64, t, i int) decide {
	before = slices.Clone(before)
	var program []float64
	return r.deciding(func(k int) float64 {
		if program == nil {
			program = r.after(t+1, i, "error")
		}
		return before[k] - program[k]
	})
}

// inBins rounds the numbers of a tensor that are not zero to the means of their bins.
func inBins(q []float64, chunks []chunk, spec string) {
	var at []int
	for _, part := range chunks {
		for _, k := range part.at {
			if q[k] != 0 {
				at = append(at, k)
			}
		}
	}
	if len(at) == 0 {
		return
	}
	var b float64
	fmt.Sscan(spec, &b)
	n, shift, squares := float64(len(at)), 0.0, 0.0
	for _, k := range at {
		shift += q[k] / n
	}
	for _, k := range at {
		squares += (q[k] - shift) * (q[k] - shift)
	}
	step, members := 6*math.Sqrt(squares/(n-1))/b, map[float64][]int{}
	for _, k := range at {
		code := max(0, min(b-1, math.RoundToEven((q[k]-shift)/step+b/2)))
		members[code] = append(members[code], k)
	}
	for _, of := range members {
		mean := 0.0
		for _, k := range of {
			mean += q[k] / float64(len(of))
		}
		for _, k := range of {
			q[k] = mean
		}
	}
}

// quantizedDiLoCo sends changes in numbers of few bits, with feedback, which shows the messages.
func (r *recursion) quantizedDiLoCo() {
	h, block := one(r, "local-steps", 2, 4), param(r, "block", 7, 64)
	quantize := param(r, "quantize", "int2", "int3", "int4", "int8", "fp8")
	feedback, twoSteps := 1.0, false
	if quantize != "int2" && quantize != "int3" {
		feedback = param(r, "feedback", 0.5, 0.9)
		twoSteps = pick(r, false, true)
		if !twoSteps {
			param(r, "collective", "gather")
		}
	}
	o, e := r.newOuter(), zeroes(r.n, r.d)
	for t := range r.times(1) {
		if r.x = r.stepAll(nil); (t+1)%h > 0 {
			continue
		}
		sum := make([]float64, r.d)
		for i := range e {
			e[i] = plus(plus(scaled(feedback, e[i]), 1, o.phi), -1, r.x[i])
			q := r.inBlocks(quantize, block, e[i], r.sentFrom(e[i], t, i))
			e[i], sum = plus(e[i], -1, q), plus(sum, 1/float64(r.n), q)
		}
		if twoSteps {
			momentum := slices.Clone(o.b)
			var program []float64
			sum = r.inBlocks(quantize, block, sum, r.deciding(func(k int) float64 {
				if program == nil {
					program = r.after(t+1, 0, "outer_momentum")
				}
				return program[k] - o.mu*momentum[k]
			}))
		}
		for i := range r.x { // the outer step takes the mean of the changes
			r.x[i] = plus(o.phi, -1, sum)
		}
		o.step(r.x, 0, r.d)
	}
}

// inBlocks rounds each block of a tensor to numbers of few bits times a scale.
func (r *recursion) inBlocks(quantize string, block int, v []float64, tie decide) []float64 {
	q, from := make([]float64, len(v)), 0
	top, nearest := 448.0, func(x float64) (unit float64) {
		return max(math.Pow(2, -9), math.Pow(2, math.Floor(math.Log2(math.Abs(x)))-3))
	}
	if quantize != "fp8" {
		var bits int
		fmt.Sscanf(quantize, "int%d", &bits)
		top, nearest = math.Pow(2, float64(bits-1))-1, func(float64) float64 { return 1 }
	}
	for _, n := range r.tensors() {
		for end := from + n; from < end; {
			part := v[from:min(from+block, end)]
			most := 0.0
			for _, x := range part {
				most = max(most, math.Abs(x))
			}
			r.decisions += len(part)
			for k, x := range part {
				scale := most / top
				unit := nearest(x/scale) * scale
				at := math.Round(x / unit)
				q[from+k] = at * unit
				switch off := x/unit - at; { // a half, within rounding
				case math.Abs(off) > 0.5-rounding/unit && math.Abs(x) < most:
					q[from+k] = tie(from+k, at*unit, (at+math.Copysign(1, off))*unit)
				}
			}
			from += len(part)
		}
	}
	return q
}
