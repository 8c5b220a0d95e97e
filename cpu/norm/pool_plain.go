package norm

func maxPoolGo(p windows, x, y, at []float32) {
	for i := range p.pixels {
		y, at := y[i*p.channels:][:p.channels], at[i*p.channels:][:p.channels]
		for j := range y {
			y[j], at[j] = p.maximumAt(x[i*p.step+j:])
		}
	}
}

// maximumAt returns the maximum of one channel of a window and its index.
func (p *windows) maximumAt(x []float32) (best, at float32) {
	best, at = x[0], p.firstIndex
	place := p.firstIndex
	for row := range p.rows {
		for col := range p.cols {
			if v := x[row*p.rowStride+col*p.channels]; !(v <= best) && best == best {
				best, at = v, place
			}
			place += p.colStep
		}
		place += p.rowStep
	}
	return best, at
}

func maxPoolGradGo(p windows, dy, at, dx []float32) {
	for i := range p.pixels {
		from := i * p.channels
		for j := range dx[i*p.step:][:p.channels] {
			dx[i*p.step+j] = p.gradientAt(dy[from+j:], at[from+j:])
		}
	}
}

// gradientAt returns the sum of the gradients of one channel of a pixel.
func (p *windows) gradientAt(dy, at []float32) float32 {
	sum, place := float32(0), p.firstIndex
	for row := range p.rows {
		for col := range p.cols {
			if i := row*p.rowStride + col*p.channels; at[i] == place {
				sum += dy[i]
			}
			place += p.colStep
		}
		place += p.rowStep
	}
	return sum
}
