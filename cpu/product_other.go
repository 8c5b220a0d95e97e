//go:build !amd64 || noasm

package cpu

// product is gemmThen without its checks.
func product(m, n, k int, alpha float32, a, b view, beta float32, c view, then epilogue) {
	productPlain(m, n, k, alpha, a, b, beta, c, then)
}

// takesBytes says whether products over so many examples take them as bytes.
func takesBytes(int) bool { return false }

func productOfBytes(int, int, int, float32, coded, view, view, epilogue) { panic(noBytes) }

func productByBytes(int, int, int, float32, view, coded, view, epilogue) { panic(noBytes) }

const noBytes = "cpu: a product in Go takes no bytes"
