package dynlib

import (
	"strings"
	"testing"
)

// open opens a library of this machine, or skips the test.
func open(t *testing.T, l *Library) *Handle {
	t.Helper()
	h, err := System().Open(l)
	if err != nil {
		t.Skipf("%v (set %s to a folder with it)", err, PathVariable)
	}
	return h
}

// The libraries installed on this machine open and export the expected names.
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
				t.Errorf("a missing function: %v", err)
			}
			var table struct {
				Some  func() int32 `sym:"firstNotThere"`
				Other uintptr      `sym:"secondNotThere"`
				May   func() int32 `sym:"thirdNotThere,optional"`
			}
			if err := Bind(&table, h); err == nil || !strings.Contains(err.Error(), "firstNotThere, secondNotThere:") ||
				table.May != nil {
				t.Errorf("a table of missing functions: %v", err)
			}
		})
	}
}

// A cuDNN without kernels for the GPU is rejected.
func TestCUDNNForVolta(t *testing.T) {
	open(t, CUDNN(13, 90))
	_, err := System().Open(CUDNN(13, 70))
	if err == nil || !strings.Contains(err.Error(), "compute capability 7.0") {
		t.Errorf("%v", err)
	}
	_, err = System().Open(CUDNN(12, 90))
	if err == nil || !strings.Contains(err.Error(), "CUDA 12") {
		t.Skipf("cuDNN for CUDA 12 is installed too: %v", err)
	}
}
