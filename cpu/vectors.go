package cpu

import (
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

// leastAdamW is how many coordinates are worth another goroutine.
const leastAdamW = 32 << 10

// AdamW implements device.Device.AdamW. The goroutines of a team that no Program uses share a long
// vector. It panics if the lengths differ.
func (d *Device) AdamW(a device.Adam, g, m, v, x device.Vector) {
	n := g.Len()
	if d.teams == nil || n < 2*leastAdamW {
		d.Ops.AdamW(a, g, m, v, x)
		return
	}
	team := d.teams.Acquire()
	defer d.teams.Release(team)
	o := kernel.Args{Workers: &kernel.Workers{Team: team}}
	o.Parallel(min(o.Threads(), n/leastAdamW), func(_ *kernel.Args, part, of int) {
		from, to := kernel.SplitUnits(part, of, n, kernel.LineFloats)
		vec.AdamWRange(a, g, m, v, x, from, to)
	})
}
