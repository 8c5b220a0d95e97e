package dynlib

import (
	"strings"
	"testing"
)

// open opens a library of this machine, or skips.
func open(t *testing.T, l *Library) *Handle {
	t.Helper()
	h, err := System().Open(l)
	if err != nil {
		t.Skipf("%v (%s names a folder with it)", err, PathVariable)
	}
	return h
}

// The libraries of a machine that has them open, and know their names.
func TestNVIDIA(t *testing.T) {
	for _, c := range []struct {
		library *Library
		symbol  string
	}{{NVRTC(13), "nvrtcVersion"}, {CUBLAS(13), "cublasCreate_v2"}, {CUBLASLt(13), "cublasLtMatmul"}, {CUDNN(13, 90),
		"cudnnCreate"},
		{NVRTC(12), "nvrtcVersion"}, {CUBLAS(12), "cublasCreate_v2"}, {CUDNN(12, 70), "cudnnCreate"}} {
		t.Run(c.library.Files[0], func(t *testing.T) {
			h := open(t, c.library)
			if _, err := h.Symbol(c.symbol); err != nil {
				t.Error(err)
			}
			if _, err := h.Symbol("noSuchFunction"); err == nil || !strings.Contains(err.Error(), "noSuchFunction") {
				t.Errorf("a function that is not there: %v", err)
			}
			var table struct {
				Some  func() int32 `sym:"firstNotThere"`
				Other uintptr      `sym:"secondNotThere"`
				May   func() int32 `sym:"thirdNotThere,optional"`
			}
			if err := Bind(&table, h); err == nil || !strings.Contains(err.Error(), "firstNotThere, secondNotThere:") ||
				table.May != nil {
				t.Errorf("a table of functions that are not there: %v", err)
			}
		})
	}
}

// cuDNN for a GPU that it has no kernels for is refused.
func TestCUDNNForVolta(t *testing.T) {
	open(t, CUDNN(13, 90))
	_, err := System().Open(CUDNN(13, 70))
	if err == nil || !strings.Contains(err.Error(), "compute capability 7.0") {
		t.Errorf("%v", err)
	}
	_, err = System().Open(CUDNN(12, 90))
	if err == nil || !strings.Contains(err.Error(), "CUDA 12") {
		t.Skipf("cuDNN for CUDA 12 is there too: %v", err)
	}
}
