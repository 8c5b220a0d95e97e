package devicetest

import "fspda/device"

// convOut returns the height and the width of the output: the number of window positions in the
// padded input.
func convOut(d []int) (p, q int) {
	r, s, stride, pad := d[5], d[6], d[7], d[8]
	for p*stride+r <= d[1]+2*pad {
		p++
	}
	for q*stride+s <= d[2]+2*pad {
		q++
	}
	return p, q
}

// convProducts returns the largest number of products summed in one element.
func convProducts(c *device.Call) int {
	d := c.Dims
	switch c.Kernel {
	case device.ConvGradX:
		return d[4] * d[5] * d[6]
	case device.ConvGradW:
		p, q := convOut(d)
		return d[0] * p * q
	}
	return d[3] * d[5] * d[6]
}

// interpretConv enumerates all products of a convolution and adds each to its output element.
func interpretConv(c *device.Call, in, out [][]float64) {
	clear(out[0])
	d := c.Dims
	n, h, w, ch, k, r, s, stride, pad := d[0], d[1], d[2], d[3], d[4], d[5], d[6], d[7], d[8]
	p, q := convOut(d)
	for y := range n * p * q * k {
		image, row, col, output := y/(p*q*k), y/(q*k)%p*stride-pad, y/k%q*stride-pad, y%k
		for tap := range r * s {
			i, j := row+tap/s, col+tap%s
			if i < 0 || i >= h || j < 0 || j >= w {
				continue
			}
			x, f := ((image*h+i)*w+j)*ch, (output*r*s+tap)*ch
			for l := range ch {
				switch c.Kernel {
				case device.Conv:
					out[0][y] += in[0][x+l] * in[1][f+l]
				case device.ConvGradX:
					out[0][x+l] += in[0][y] * in[1][f+l]
				case device.ConvGradW:
					out[0][f+l] += in[0][x+l] * in[1][y]
				}
			}
		}
	}
}

// convCalls are the tested dimensions n h w c k r s stride pad: windows of every kind, sizes around
// the register width, images not divisible by the tile, long sums.
var convCalls = [][9]int{
	{1, 1, 1, 1, 1, 1, 1, 1, 0},
	{2, 5, 4, 3, 2, 3, 3, 1, 1},
	{2, 7, 7, 17, 33, 3, 3, 1, 1},
	{3, 8, 8, 16, 16, 3, 3, 1, 1},
	{1, 16, 16, 8, 31, 3, 3, 2, 1},
	{2, 6, 9, 15, 7, 3, 3, 2, 1},
	{1, 20, 23, 3, 9, 7, 7, 2, 3},
	{1, 13, 30, 3, 16, 5, 3, 3, 2},
	{2, 9, 8, 16, 40, 1, 1, 2, 0},
	{2, 5, 5, 32, 17, 1, 1, 1, 0},
	{1, 4, 5, 6, 7, 1, 1, 3, 0},
	{1, 6, 6, 5, 4, 2, 2, 1, 0},
	{1, 5, 6, 4, 5, 2, 3, 1, 1},
	{2, 3, 3, 9, 8, 3, 3, 1, 0},
	{1, 3, 40, 2, 3, 1, 4, 2, 0},
	{1, 40, 3, 2, 3, 4, 1, 2, 0},
	{1, 3, 3, 150, 5, 3, 3, 1, 1},
	{1, 2, 2, 400, 3, 2, 1, 1, 0},
	{1, 2, 3, 3, 410, 2, 2, 1, 1},
	{1, 4, 2, 2, 2, 2, 2, 4, 1},
	{1, 2, 90, 1, 2, 1, 2, 1, 0},
}
