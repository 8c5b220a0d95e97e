//go:build !amd64 || noasm || fspda_noasm

package vec

import (
	"fspda/cpu/kernel"
)

func AddRow(dst, bias []float32)                    { addsGo(dst, dst, bias) }
func adds(dst, a, b []float32, _ bool)              { addsGo(dst, a, b) }
func ReLUs(dst, x []float32, _ bool)                { relusGo(dst, x) }
func ReLUGrads(dst, y, dy []float32, _ bool)        { reluGradsGo(dst, y, dy) }
func SigmoidGrads(dst, y, dy []float32, _ bool)     { sigmoidGradsGo(dst, y, dy) }
func Sigmoids(dst, x []float32)                     { sigmoidsGo(dst, x) }
func Swishes(dst, x, v []float32)                   { swishesGo(dst, x, v) }
func SwishGrads(y, dv, dx, x, v, dy []float32)      { swishGradsGo(y, dv, dx, x, v, dy) }
func gelus(c *curve, dst, x []float32)              { gelusGo(c, dst, x) }
func geluGrads(c *curve, dst, x, dy []float32)      { geluGradsGo(c, dst, x, dy) }
func combine(dst []float32, c *combination, _ bool) { combineGo(dst, c) }
func combineAhead(dst []float32, c *combination)    { combineGo(dst, c) }
func dotBlock(x, y []float32) float64               { return dotGo(x, y) }
func rowMaxima(tops, x []float32, n int)            { rowMaximaGo(tops, x, n) }

func expRows(dst []float32, sums []float64, x, tops []float32, n int) {
	expRowsGo(dst, sums, x, tops, n)
}

func floatExpRows(dst []float32, sums []float64, x, tops []float32, n int) {
	floatExpRowsGo(dst, sums, x, tops, n)
}

func scaleRows(dst, x, scales []float32, n, stride int) { scaleRowsGo(dst, x, scales, n, stride) }

func slopeRows(dst, p, d []float32, means []float64, n, stride int) {
	slopeRowsGo(dst, p, d, means, n, stride)
}

func timesRows(dst, src []float32, scales []float64, n int) { timesRowsGo(dst, src, scales, n) }

func addColumns(sums *[colBlock]float64, a []float32, rows, stride, columns int) {
	addColumnsGo(sums, a, rows, stride, columns)
}

func adamW(a *adam, g, m, v, x []float32)                { adamWGo(a, g, m, v, x) }
func addDiffAll1(p, q []float32, a float32, v []float32) { addDiffAll1Go(p, q, a, v) }

func addDiffAll2(p, q []float32, a float32, v []float32, b float32, w []float32) {
	addDiffAll2Go(p, q, a, v, b, w)
}

func sumDiffs(sum []float32, s *differences)           { sumDiffsGo(sum, s) }
func addDiffs1(x []float32, b float32, s *differences) { addDiffs1Go(x, b, s) }

func addDiffs2(x []float32, b float32, y []float32, c float32, s *differences) {
	addDiffs2Go(x, b, y, c, s)
}

func (m *diffCombination) run(d []float32) { m.runGo(d) }

func scatterAdd(v []float32, at []uint32, n int, p []float32, a float32) {
	scatterAddGo(v, at, n, p, a)
}

func gatherAt(dst, src []float32, at []uint32) { gatherAtGo(dst, src, at) }

func addDiffAt1(p, q []float32, at []uint32, a float32, v []float32) { addDiffAt1Go(p, q, at, a, v) }

func addDiffAt2(p, q []float32, at []uint32, a float32, v []float32, b float32, w []float32) {
	addDiffAt2Go(p, q, at, a, v, b, w)
}

func DecodeRows(dst []float32, ds int, v kernel.ByteMatrix, rows, cols int) {
	decodeRowsGo(dst, ds, v, rows, cols)
}

func bandwidth(v [][]float32, reads, n, _ int) { bandwidthGo(v, reads, n) }
