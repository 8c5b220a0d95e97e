package safetensors

import (
	"bytes"
	"strings"
	"testing"
)

// Lazy values give the same file as slices, and are fetched one after the other.
func TestLazy(t *testing.T) {
	a, b := make([]float32, 3*chunk+5), []float32{1, 2, 3, 4, 5, 6}
	for i := range a {
		a[i] = float32(i)
	}
	var want, got bytes.Buffer
	if err := Write(&want, []Tensor{{"a", []int{len(a)}, a}, {"b", []int{2, 3}, b}}, nil); err != nil {
		t.Fatal(err)
	}
	host := make([]float32, len(a))
	get := func(v []float32) Lazy {
		return Lazy{Len: len(v), Get: func() []float32 { return host[:copy(host, v)] }}
	}
	if err := Write(&got, []Tensor{{"a", []int{len(a)}, get(a)}, {"b", []int{2, 3}, get(b)}}, nil); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want.Bytes()) {
		t.Error("the files differ")
	}
	short := Lazy{Len: 6, Get: func() []float32 { return b[:5] }}
	if err := Write(&got, []Tensor{{"b", []int{6}, short}}, nil); err == nil || !strings.Contains(err.Error(), `"b"`) ||
		!strings.Contains(err.Error(), "want 6") {
		t.Errorf("error %v", err)
	}
}
