package cpu

import (
	"slices"

	"fspda/cpu/kernel"
	"fspda/cpu/vec"
	"fspda/device"
)

// Vector is a vector of this device.
type Vector = vec.Vector

// Index is a set of coordinates on this device.
type Index = vec.Index

// LabelError reports a label that is not a class. Run and Call return it, wrapped.
type LabelError = vec.LabelError

// Numbers of coordinates that are worth another goroutine.
const (
	leastAdamW   = 32 << 10
	leastCombine = 64 << 10
)

// divided calls run with parts of n coordinates, each of a least length, on the goroutines of a
// team that no Program uses.
func (d *Device) divided(n, least int, run func(from, to int)) {
	if d.teams == nil || n < 2*least {
		run(0, n)
		return
	}
	team := d.teams.Acquire()
	defer d.teams.Release(team)
	o := kernel.Args{Workers: &kernel.Workers{Team: team}}
	o.Parallel(min(o.Threads(), n/least), func(_ *kernel.Args, part, of int) {
		run(kernel.SplitUnits(part, of, n, kernel.LineFloats))
	})
}

// AdamW implements device.Device.AdamW. Goroutines share a long vector. It panics if the lengths
// differ.
func (d *Device) AdamW(a device.Adam, g, m, v, x device.Vector, then ...device.Combination) {
	d.divided(g.Len(), leastAdamW, func(from, to int) { vec.AdamWRange(a, g, m, v, x, then, from, to) })
}

// Combine implements device.Device.Combine. Goroutines share a long vector. It panics if the
// lengths differ.
func (d *Device) Combine(dst device.Vector, terms ...device.Term) {
	n := dst.Len()
	if d.teams == nil || n < 2*leastCombine {
		d.Ops.Combine(dst, terms...)
		return
	}
	terms = slices.Clone(terms) // that of the caller stays on its stack
	d.divided(n, leastCombine, func(from, to int) { vec.CombineRange(dst, from, to, terms...) })
}

// CombineAll implements device.Device.CombineAll. Goroutines share long vectors. It panics if the
// lengths differ.
func (d *Device) CombineAll(all ...device.Combination) {
	if len(all) == 0 || d.teams == nil || all[0].Dst.Len() < 2*leastCombine {
		d.Ops.CombineAll(all...)
		return
	}
	d.divided(all[0].Dst.Len(), leastCombine, func(from, to int) { vec.CombineAllRange(all, from, to) })
}

// Dot implements device.Device.Dot. Goroutines share long vectors. It panics if the lengths differ.
func (d *Device) Dot(a, b device.Vector) float64 {
	n := a.Len()
	if d.teams == nil || n < 2*leastCombine {
		return d.Ops.Dot(a, b)
	}
	sums := make([]float64, (n+vec.DotBlock-1)/vec.DotBlock)
	d.divided(len(sums), leastCombine/vec.DotBlock, func(from, to int) { vec.DotBlocks(sums[from:to], a, b, from) })
	sum := 0.0
	for _, s := range sums {
		sum += s
	}
	return sum
}
