//go:build (!amd64 && !arm64) || noasm || fspda_noasm

package jpeg

func inverse(dst []uint8, stride int, blocks []int16, quant *[64]int16, pairs int) {
	inverseGo(dst, stride, blocks, quant, pairs)
}
