package dist

import (
	"fspda/device"
	"fspda/dist/strata"
)

// stratified draws one coordinate from each of k blocks ([strata.Draw]).
type stratified struct{ maskBase }

func (m stratified) Sampling() (s device.Sampling, ok bool) {
	return device.Sampling{Dim: m.d, Count: m.k, Stratified: true}, true
}

func (m stratified) Draw(dst []uint32, t, i, j int) []uint32 {
	dst = grow(dst, m.k)
	s := m.stream(t, i, j)
	strata.Draw(dst, m.d, &s)
	return dst
}
