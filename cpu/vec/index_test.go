package vec

import (
	"strings"
	"testing"

	"fspda/device"
	"fspda/internal/testing/kerneltest"
)

func TestNewIndexReusesMemory(t *testing.T) {
	d := Ops{}
	first := d.NewIndex([]uint32{1, 2, 3, 4}, nil).(*Index)
	p := &first.coordinates[0]
	second := d.NewIndex([]uint32{7, 9}, first).(*Index)
	if &second.coordinates[0] != p || second.Len() != 2 || second.coordinates[1] != 9 {
		t.Errorf("the memory of old was not used: %v", second.coordinates)
	}
}

func TestIndexPanics(t *testing.T) {
	d := Ops{}
	for want, f := range map[string]func(){
		"cpu: NewIndex: coordinate 2 is 4 after 4": func() { d.NewIndex([]uint32{1, 4, 4}, nil) },
		"cpu: NewIndex: coordinate 1 is 2 after 3": func() { d.NewIndex([]uint32{3, 2}, nil) },
		"device: Gather: coordinate 8 is outside of a vector of length 8": func() {
			dst, src := &Vector{make([]float32, 2)}, &Vector{make([]float32, 8)}
			d.Do(device.Gather(dst, src, d.NewIndex([]uint32{7, 8}, nil)))
		},
		"device: AddDiff: coordinate 9 is outside of a vector of length 8": func() {
			v := &Vector{make([]float32, 1)}
			d.Do(device.AddDiff(v, v, d.NewIndex([]uint32{9}, nil), device.Term{A: 1, V: &Vector{make([]float32, 8)}}))
		},
	} {
		if got := kerneltest.Panic(t, f); !strings.HasPrefix(got, want) {
			t.Errorf("panic %q, want %q", got, want)
		}
	}
}
