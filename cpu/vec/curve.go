package vec

import (
	"math"

	"fspda/cpu/tile"
)

// GELU and its derivative in float32. For x >= 0 let p(x) be σ(−2·sqrt(2/π)·(x + 0.044715·x³)) in
// the tanh form and Φ(−x) in the exact form, and let q(x) be the derivative of GELU at −x. Then
//
//	y = max(x, 0) − |x|·p(|x|),   dx = dy·q(−x) for x <= 0, dy·(1 − q(x)) for others
//
// since the derivatives at x and −x add up to 1 in both forms. Each of the four functions is a
// curve. Both results are within 1.2e-7 of their size plus 1e-8. Below −5 the relative error of y
// grows, and y is 0 from the bound on, where it is smaller than 1e-8.

// The intervals and the degree of a curve.
const (
	curveParts  = 8
	curveDegree = 8
)

// curve is a function of x >= 0 that is 0 from a bound on: on the interval whose number is x·scale,
// rounded to an integer, a polynomial in x minus a center of it. The sums of the polynomial are
// fused multiply-adds in float32.
//
// The terms are minimax approximations on each interval, weighted by the error that the result may
// have, and rounded one after the other, the constant first. The last center is the bound. The
// second center of a derivative is its root, so that the result keeps its digits near it. Assembly
// reads the fields in this order.
type curve struct {
	center       [curveParts]float32
	terms        [curveDegree + 1][curveParts]float32 // polynomials of the intervals, constants first
	scale, bound float32
}

// curveShift leaves the nearest integer in the low bits of a float32 to which it is added.
const curveShift = 0x1p23

// at returns the curve at the size of x, and that size, which is the bound at most. NaN stays NaN.
func (c *curve) at(x float32) (y, size float64) {
	size = math.Abs(float64(x))
	if size > float64(c.bound) {
		size = float64(c.bound)
	}
	part := math.Float32bits(float32(tile.FMA(size, float64(c.scale), curveShift))) % curveParts
	u := float64(float32(size) - c.center[part])
	y = float64(c.terms[curveDegree][part])
	for k := curveDegree - 1; k >= 0; k-- {
		y = tile.FMA(y, u, float64(c.terms[k][part]))
	}
	return y, size
}

func gelusGo(c *curve, dst, x []float32) {
	for i, v := range x[:len(dst)] {
		p, size := c.at(v)
		positive := float64(v)
		if v < 0 {
			positive = 0
		}
		dst[i] = float32(tile.FMA(-size, p, positive))
	}
}

func geluGradsGo(c *curve, dst, x, dy []float32) {
	for i, v := range x[:len(dst)] {
		q, _ := c.at(v)
		slope := float32(q)
		if v > 0 {
			slope = 1 - slope
		}
		dst[i] = dy[i] * slope
	}
}

// The curves of each form.
var (
	tails  = [...]*curve{Tanh: &tanhTail, Erf: &erfTail}
	slopes = [...]*curve{Tanh: &tanhSlope, Erf: &erfSlope}
)

// tanhTail is σ(−2·sqrt(2/π)·(x + 0.044715·x³)).
var tanhTail = curve{
	center: [curveParts]float32{0.2, 0.8, 1.6, 2.4, 3.2, 4, 4.8, 5.9375},
	terms: [curveDegree + 1][curveParts]float32{
		{0.42074284, 0.21196038, 0.054914396, 0.008032017, 5.84239e-04, 1.7561486e-05, 1.7632007e-07, 0},
		{
			-0.39100498, -0.28943014, -0.11125932, -0.02253832,
			-0.0022116813, -8.81712e-05, -1.1509709e-06, -4.5648165e-09,
		},
		{
			0.03928818, 0.115852974, 0.08838399, 0.0272725,
			0.00378382, 2.0630035e-04, 3.5755272e-06, -1.2225426e-07,
		},
		{
			0.06280331, 0.016952688, -0.028464913, -0.017796943,
			-0.003798509, -2.961595e-04, -7.005415e-06, -1.3382405e-06,
		},
		{
			-0.010126806, -0.022932447, -0.0030131484, 0.0059395432,
			0.0024024826, 2.8808278e-04, 9.655608e-06, -7.097891e-06,
		},
		{
			-0.009020359, 0.0013036078, 0.0051515116, -2.1330525e-04,
			-9.210327e-04, -1.9666056e-04, -9.854338e-06, -2.0530091e-05,
		},
		{
			0.0058657024, 0.0032431236, -0.0010763714, -6.477935e-04,
			1.4878869e-04, 9.277259e-05, 7.687071e-06, -3.2817527e-05,
		},
		{
			0, -5.876024e-04, -3.2783335e-04, 2.3665943e-04,
			4.040355e-05, -2.6471469e-05, -4.7815065e-06, -2.7344371e-05,
		},
		{
			0, -0.001037237, 1.9928098e-04, 3.25394e-06,
			-2.337683e-05, 1.980727e-06, 2.0466978e-06, -9.215804e-06,
		},
	},
	scale: 1.25, bound: 5.9375,
}

// tanhSlope is the derivative of GELU in its tanh form at −x.
var tanhSlope = curve{
	center: [curveParts]float32{0.2, 0.75246143, 1.6, 2.4, 3.2, 4, 4.8, 5.9375},
	terms: [curveDegree + 1][curveParts]float32{
		{0.34254184, -4.5526027e-09, -0.12310051, -0.04605995, -0.006493141, -3.351232e-04, -5.348404e-06, 0},
		{
			-0.76629645, -0.43040007, 0.060310245, 0.08583159,
			0.019793106, 0.0014740592, 3.202322e-05, 2.4270895e-07,
		},
		{
			0.15553819, 0.38751835, 0.1285196, -0.0463207,
			-0.025114326, -0.002935044, -9.013535e-05, 6.524402e-06,
		},
		{
			0.24333872, 0.015782777, -0.13314901, -0.014178459,
			0.015556476, 0.0034247367, 1.5735971e-04, 7.13622e-05,
		},
		{
			-0.05858446, -0.11393793, 0.026161682, 0.027141474,
			-0.002720637, -0.002491518, -1.8883008e-04, 3.7886223e-04,
		},
		{
			-0.052632153, 0.016609631, 0.020631567, -0.010494738,
			-0.0026512553, 0.0010459971, 1.6235634e-04, 0.0010961023,
		},
		{
			0.014791231, 0.019574022, -0.011252654, -5.0354516e-04,
			0.001909244, -1.076579e-04, -9.9786084e-05, 0.0017538536,
		},
		{
			0, -0.005072561, -2.3570286e-04, 0.0016151274,
			-3.4754912e-04, -1.4637661e-04, 3.9946397e-05, 0.0014626009,
		},
		{
			0, -0.0018899636, 0.0015756974, -5.3112843e-04,
			-9.000364e-05, 7.689885e-05, -6.8455874e-06, 4.944303e-04,
		},
	},
	scale: 1.25, bound: 5.9375,
}

// erfTail is Φ(−x).
var erfTail = curve{
	center: [curveParts]float32{0.21333334, 0.85333335, 1.7066667, 2.56, 3.4133334, 4.266667, 5.12, 6.375},
	terms: [curveDegree + 1][curveParts]float32{
		{0.41553348, 0.19673723, 0.04394201, 0.005233609, 3.208669e-04, 9.920754e-06, 1.5276797e-07, 0},
		{
			-0.38996664, -0.27719682, -0.09298713, -0.015059619,
			-0.0011775008, -4.4449276e-05, -8.10067e-07, -1.4711822e-08,
		},
		{
			0.041597515, 0.118271284, 0.07934917, 0.019276304,
			0.0020095995, 9.482519e-05, 2.073784e-06, -3.5552065e-07,
		},
		{
			0.0620356, 0.012557342, -0.029643275, -0.013939159,
			-0.0020902213, -1.2745497e-04, -3.4049117e-06, -3.4528132e-06,
		},
		{
			-0.010303019, -0.022404853, -5.802195e-04, 0.0057084267,
			0.0014487748, 1.2014537e-04, 4.0122077e-06, -1.6338405e-05,
		},
		{
			-0.008805664, 0.0019468354, 0.004648592, -8.317577e-04,
			-6.7573384e-04, -8.339069e-05, -3.5846533e-06, -4.2070475e-05,
		},
		{
			0.0025651762, 0.0028103082, -0.0012235817, -4.0626255e-04,
			1.9075298e-04, 4.331317e-05, 2.5297427e-06, -5.9963037e-05,
		},
		{
			0, -5.796541e-04, -2.7033608e-04, 2.4426123e-04,
			-1.0304627e-05, -1.6590033e-05, -1.5193938e-06, -4.452157e-05,
		},
		{
			0, -4.5507436e-04, 1.4158651e-04, -3.529864e-05,
			-1.4355843e-05, 4.0260056e-06, 6.701733e-07, -1.34167285e-05,
		},
	},
	scale: 1.171875, bound: 6.375,
}

// erfSlope is the derivative of GELU in its exact form at −x.
var erfSlope = curve{
	center: [curveParts]float32{0.21333334, 0.75179154, 1.7066667, 2.56, 3.4133334, 4.266667, 5.12, 6.375},
	terms: [curveDegree + 1][curveParts]float32{
		{0.3323406, -4.8078626e-09, -0.11475603, -0.033319015, -0.003698336, -1.7972954e-04, -3.9948204e-06, 0},
		{
			-0.76218545, -0.43149397, 0.084870405, 0.06857548,
			0.011363877, 7.2027626e-04, 1.9615476e-05, 5.961202e-07,
		},
		{
			0.16449334, 0.3882848, 0.086275294, -0.049223762,
			-0.015375149, -0.001346937, -4.606811e-05, 1.4442311e-05,
		},
		{
			0.23939821, 0.018198362, -0.122512616, 0.0026965647,
			0.011419149, 0.0015406709, 6.854695e-05, 1.4017597e-04,
		},
		{
			-0.060698915, -0.113998696, 0.036737535, 0.017889673,
			-0.004284341, -0.0011786805, -7.2035065e-05, 6.635117e-04,
		},
		{
			-0.050538257, 0.014793049, 0.015139884, -0.01122679,
			-1.4087773e-04, 6.0834497e-04, 5.6250326e-05, 0.0017085054,
		},
		{
			0.01361431, 0.019266129, -0.011677113, 0.0016293814,
			0.0010337557, -1.8788972e-04, -3.3372184e-05, 0.0024357429,
		},
		{
			0, -0.0045624906, 4.1644278e-04, 0.0012433671,
			-4.9856474e-04, 5.1455886e-06, 1.5133123e-05, 0.0018088381,
		},
		{
			0, -0.0014358915, 0.0014491183, -7.1182026e-04,
			6.9288e-05, 2.1957454e-05, -4.5653483e-06, 5.454448e-04,
		},
	},
	scale: 1.171875, bound: 6.375,
}
