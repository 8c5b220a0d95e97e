//go:build (amd64 || arm64) && !noasm && !fspda_noasm

package dist

// sumRowsFast is sumRows for 1 to maxSide numbers; false: it did nothing.
func sumRowsFast(dst, a, v []float32, stride int) bool {
	if !useTransform || len(a) == 0 {
		return false
	}
	_ = v[(len(a)-1)*stride+len(dst)-1]
	sumRowsAsm(&dst[0], len(dst), &a[0], len(a), &v[0], stride)
	return true
}
