package cpu

import (
	"strings"
	"testing"
)

// message returns what f panics with.
func message(t *testing.T, f func()) (text string) {
	t.Helper()
	defer func() {
		t.Helper()
		r := recover()
		if r == nil {
			t.Error("no panic")
			return
		}
		text, _ = r.(string)
	}()
	f()
	return ""
}

func TestNewIndexReusesMemory(t *testing.T) {
	d := New()
	first := d.NewIndex([]uint32{1, 2, 3, 4}, nil).(*Index)
	p := &first.coordinates[0]
	second := d.NewIndex([]uint32{7, 9}, first).(*Index)
	if &second.coordinates[0] != p || second.Len() != 2 || second.coordinates[1] != 9 {
		t.Errorf("the memory of old was not used: %v", second.coordinates)
	}
}

func TestIndexPanics(t *testing.T) {
	d := New()
	for want, f := range map[string]func(){
		"cpu: NewIndex: coordinate 2 is 4 after 4": func() { d.NewIndex([]uint32{1, 4, 4}, nil) },
		"cpu: NewIndex: coordinate 1 is 2 after 3": func() { d.NewIndex([]uint32{3, 2}, nil) },
		"cpu: Gather: coordinate 8 of a vector of length 8": func() {
			d.Gather(d.NewVector(2), d.NewVector(8), d.NewIndex([]uint32{7, 8}, nil))
		},
		"cpu: AddDiff: coordinate 9 of a vector of length 8": func() {
			v := d.NewVector(1)
			d.AddDiff(v, v, d.NewIndex([]uint32{9}, nil), term(d.NewVector(8)))
		},
	} {
		if got := message(t, f); !strings.HasPrefix(got, want) {
			t.Errorf("panic %q, want %q", got, want)
		}
	}
}
