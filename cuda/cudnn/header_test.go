package cudnn

import (
	"fmt"
	"testing"

	"fspda/internal/testing/headertest"
)

// The Go declarations of all functions match NVIDIA's header.
func TestHeader(t *testing.T) {
	for _, major := range []int{12, 13} {
		t.Run(fmt.Sprint(major), func(t *testing.T) {
			headertest.Check(t, headertest.Headers(t, major, "crt/host_defines.h", "cuda_runtime_api.h", "cudnn.h"),
				"cudnn.h", API{}, Backend{})
		})
	}
}
