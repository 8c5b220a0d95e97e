//go:build !(amd64 || arm64) || noasm || fspda_noasm

package data

// columnTable is the layout of the weights for vector code.
type columnTable struct{}

func (*columnTable) set(*axis) {}

func sumRows(dst []int16, src []uint8, stride int, weight []int16) {
	sumRowsGo(dst, src, stride, weight)
}

func sumColumns(dst []uint8, line []int16, a *axis, _ *columnTable) { sumColumnsGo(dst, line, a) }
