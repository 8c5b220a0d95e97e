package kerneltest

import (
	"fspda/cuda/kernels"
	"fspda/device"
	"fspda/internal/rng"
)

// Without crops the numbers equal the numbers of device.Batch, which the CPU engine uses.
func imagesOfBatch(h *fixture) {
	const side, stored = 9, 6
	rows := []int32{4, 0, 5, 4}
	for _, channels := range []int{1, 3} {
		for c := 1; c <= 3; c += 2 {
			if channels > c {
				continue
			}
			scale, shift := []float32{0.0171, 0.0175, 0.0174}[:channels], []float32{-2.1, -2.03, -1.8}[:channels]
			b := device.Batch{Bytes: randomBytes(stored * side * side * c), Rows: rows, Scale: scale, Shift: shift,
				Y: make([]int32, len(rows))}
			want := b.Numbers(nil, side*side*c)
			got := make([]float32, len(want))
			p := kernels.Images{N: len(rows), H: side, W: side, C: c, Height: side, Width: side, Padded: c,
				Channels: channels, Dst: at(h, got), Bytes: at(h, b.Bytes), Rows: at(h, rows), Scale: at(h, scale),
				Shift: at(h, shift)}
			h.run(p.Call())
			sameBits(h, "numbers", got, want)
		}
	}
}

// Crops, mirror images, borders and the fourth channel, in every element.
func images(h *fixture) {
	const n, rows, columns, c, height, width, padded = 3, 8, 10, 3, 6, 7, 4
	pixels := randomBytes(n * rows * columns * c)
	crops := []int32{0, 0, 0, 2, 3, 1, -3, 5, 1}
	scale, shift := []float32{0.0171, 0.0175, 0.0174}, []float32{-2.1, -2.03, -1.8}
	want := make([]float32, n*height*width*padded)
	for i := range n {
		for y := range height {
			for x := range width {
				from := x
				if crops[3*i+2] == 1 {
					from = width - 1 - x
				}
				top, left := y+int(crops[3*i]), from+int(crops[3*i+1])
				for ch := range c {
					b := uint8(0)
					if top >= 0 && top < rows && left >= 0 && left < columns {
						b = pixels[((i*rows+top)*columns+left)*c+ch]
					}
					want[((i*height+y)*width+x)*padded+ch] = float32(float32(b)*scale[ch]) + shift[ch]
				}
			}
		}
	}
	for _, e := range []kernels.Element{kernels.F32, kernels.F16, kernels.BF16} {
		raw := make([]byte, len(want)*e.Size())
		p := kernels.Images{Element: e, N: n, H: rows, W: columns, C: c, Height: height, Width: width, Padded: padded,
			Channels: c,
			Dst:      at(h, raw), Bytes: at(h, pixels), Crops: at(h, crops), Scale: at(h, scale), Shift: at(h, shift)}
		h.run(p.Call())
		got, rounded := make([]float32, len(want)), make([]float32, len(want))
		for i := range want {
			got[i], rounded[i] = load(e, raw[e.Size()*i:]), load(e, store(e, want[i]))
		}
		sameBits(h, e.String(), got, rounded)
	}
}

func randomBytes(n int) []uint8 {
	s, b := rng.New(1, "test"), make([]uint8, n)
	for i := range b {
		b[i] = uint8(s.Uint64())
	}
	return b
}
