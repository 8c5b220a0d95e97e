package kernels_test

import (
	"errors"
	"math"
	"testing"

	"fspda/cuda/dynlib"
	"fspda/cuda/kernels"
	"fspda/internal/rng"
	"fspda/internal/testing/hostrun"
)

// host runs kernels on the host.
type host struct {
	t       testing.TB
	library *hostrun.Library
	memory  hostrun.Memory
}

func onHost(t testing.TB) *host {
	t.Helper()
	l, err := hostrun.Open()
	if _, ok := errors.AsType[*dynlib.Error](err); errors.Is(err, hostrun.ErrNoCompiler) || ok && !dynlib.Supported {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return &host{t: t, library: l}
}

// at returns the address of a slice.
func at[T any](h *host, s []T) kernels.Address { return hostrun.At(&h.memory, s) }

// copied copies a slice to memory that kernels can write.
func copied[T any](h *host, s []T) ([]T, kernels.Address) {
	c := append(make([]T, 0, len(s)), s...)
	return c, at(h, c)
}

func (h *host) run(calls ...kernels.Call) {
	h.t.Helper()
	if err := h.library.Launch(&h.memory, calls...); err != nil {
		h.t.Fatal(err)
	}
}

// numbers returns n normally distributed float32 numbers.
func numbers(seed uint64, n int) []float32 {
	s := rng.New(seed, "test")
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(s.Norm())
	}
	return v
}

// sameBits fails the test unless got and want are bit-identical.
func sameBits(t testing.TB, what string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	for i := range got {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) && !(got[i] != got[i] && want[i] != want[i]) {
			t.Fatalf("%s: number %d of %d is %v, want %v", what, i, len(got), got[i], want[i])
		}
	}
}

// randomBytes returns n random bytes.
func randomBytes(n int) []uint8 {
	s := rng.New(1, "test")
	b := make([]uint8, n)
	for i := range b {
		b[i] = uint8(s.Uint64())
	}
	return b
}
