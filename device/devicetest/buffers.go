package devicetest

import (
	"math"

	"fspda/device"
)

func at(s device.Space, off, n int) device.Ref { return device.Ref{Space: s, Off: off, Len: n} }

// bufferCode moves 5 of 9 buffers, in place, towards half of the parameters, and returns the last
// of the five.
func bufferCode() *device.Code {
	avg, last := at(device.Buffers, 2, 5), at(device.Arena, 3, 1)
	return &device.Code{Name: "buffers", Batch: 1, Features: 1, Dim: 5, Arena: 4, Buffers: 9,
		Calls: []device.Call{
			{Kernel: device.MoveAverage, In: []device.Ref{at(device.Params, 0, 5), avg, at(device.Momentum, 0, 1)},
				Out: []device.Ref{avg}, Dims: []int{5}, Attr: 0.5},
			{Kernel: device.Scale, In: []device.Ref{at(device.Buffers, 6, 1)}, Out: []device.Ref{last}, Dims: []int{1},
				Attr: 1},
		},
		Results: []device.Result{{Name: "last", Ref: last}},
	}
}

// checkBuffers checks that RunBuffered moves the buffers that calls write by the given momentum,
// and no others.
func checkBuffers(f *field) {
	code := bufferCode()
	prog := f.load(code)
	towards, now := normal("towards", 5), normal("buffers", 9)
	params, buffers := f.vector(towards), f.vector(now)
	batch, out := device.Batch{X: []float32{0}, Y: []int32{0}}, make([]float64, 1)
	for _, momentum := range []float64{0.1, 1, 0, 1. / 3} {
		f.must(prog.RunBuffered(params, nil, buffers, momentum, batch, out))
		for i, p := range towards {
			m := float64(float32(momentum))
			now[2+i] = float32((1-m)*float64(now[2+i]) + m*(0.5*float64(p)))
		}
		got := f.read(buffers)
		for i, want := range now {
			if i < 2 || i >= 7 {
				if !same(got[i], want) {
					f.Errorf("buffer %d, which no call writes, is %v, was %v", i, got[i], want)
				}
			} else if !(math.Abs(float64(got[i]-want)) <= 2*unit*math.Abs(float64(want))) {
				f.Errorf("buffer %d after momentum %v is %v, want %v", i, momentum, got[i], want)
			}
			now[i] = got[i]
		}
		if float32(out[0]) != got[6] {
			f.Errorf("the call after the move reads %v, want %v", out[0], got[6])
		}
	}
	f.done()
	checkBufferPanics(f, prog)
}

// checkBufferPanics checks that missing, wrong or superfluous buffers panic.
func checkBufferPanics(f *field, prog device.Program) {
	d := f.d
	params, batch, out := d.NewVector(5), device.Batch{X: []float32{0}, Y: []int32{0}}, make([]float64, 1)
	run := func(buffers device.Vector, momentum float64) func() {
		return func() { _ = prog.RunBuffered(params, nil, buffers, momentum, batch, out) }
	}
	panics(f, "no buffers", func() { _ = prog.Run(params, nil, batch, out) })
	panics(f, "short buffers", run(d.NewVector(8), 0.1))
	panics(f, "foreign buffers", run(foreign{}, 0.1))
	panics(f, "momentum above 1", run(d.NewVector(9), 1.1))
	panics(f, "momentum NaN", run(d.NewVector(9), math.NaN()))
	p := lossCode(1, 2)
	plain := f.load(p.code)
	panics(f, "buffers for code without any", func() {
		_ = plain.RunBuffered(d.NewVector(p.code.Dim), nil, d.NewVector(3), 0.1, p.batch,
			make([]float64, len(p.code.Results)))
	})
}
