package jpeg

// The constants of the transform, times 2^13.
const (
	fix0298 = 2446
	fix0390 = 3196
	fix0541 = 4433
	fix0765 = 6270
	fix0899 = 7373
	fix1175 = 9633
	fix1501 = 12299
	fix1847 = 15137
	fix1961 = 16069
	fix2053 = 16819
	fix2562 = 20995
	fix3072 = 25172

	constBits = 13
	passBits  = 2 // more precision of the values between the passes
)

// inverseGo transforms pairs of adjacent blocks to 8 rows of 16 pixels each: coefficients times
// quant, columns, then rows. Sums of two values wrap to 16 bits, and the results of a pass saturate
// to 16 bits, which correct files never notice.
func inverseGo(dst []uint8, stride int, blocks []int16, quant *[64]int16, pairs int) {
	for b := range 2 * pairs {
		var v [64]int16
		for i, q := range quant {
			v[i] = blocks[64*b+i] * q
		}
		for i := range 8 {
			pass(v[i:], 8, constBits-passBits)
		}
		for y := range 8 {
			pass(v[8*y:], 1, constBits+passBits+3)
			for x, p := range v[8*y:][:8] {
				dst[y*stride+8*b+x] = uint8(min(max(p, -128), 127) + 128)
			}
		}
	}
}

// pass transforms eight values at a distance, in place, and divides them by 2^shift.
func pass(v []int16, step int, shift uint) {
	_ = v[7*step]
	in1, in3, in5, in7 := v[step], v[3*step], v[5*step], v[7*step]
	z2, z3 := int32(v[2*step]), int32(v[6*step])
	tmp2 := z2*fix0541 + z3*(fix0541-fix1847)
	tmp3 := z2*(fix0541+fix0765) + z3*fix0541
	round := int32(1) << (shift - 1)
	tmp0 := int32(v[0]+v[4*step])<<constBits + round
	tmp1 := int32(v[0]-v[4*step])<<constBits + round
	even := [4]int32{tmp0 + tmp3, tmp1 + tmp2, tmp1 - tmp2, tmp0 - tmp3}

	s3, s4 := int32(in7+in3), int32(in5+in1)
	z3 = s3*(fix1175-fix1961) + s4*fix1175
	z4 := s3*fix1175 + s4*(fix1175-fix0390)
	a, b, c, e := int32(in1), int32(in3), int32(in5), int32(in7)
	odd := [4]int32{
		e*-fix0899 + a*(fix1501-fix0899) + z4,
		c*-fix2562 + b*(fix3072-fix2562) + z3,
		c*(fix2053-fix2562) + b*-fix2562 + z4,
		e*(fix0298-fix0899) + a*-fix0899 + z3,
	}
	for i := range 4 {
		v[i*step] = saturate((even[i] + odd[i]) >> shift)
		v[(7-i)*step] = saturate((even[i] - odd[i]) >> shift)
	}
}

func saturate(v int32) int16 { return int16(min(max(v, -1<<15), 1<<15-1)) }
