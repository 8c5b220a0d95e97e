package data_test

import (
	"slices"
	"strings"
	"testing"

	"fspda/data"
	"fspda/device"
)

// The batches of a set that another program loads are indices and labels.
func TestIndexed(t *testing.T) {
	set, err := data.Indexed("own", data.Labels{Train: []int32{2, 0, 1, 1}, Test: []int32{0, 3}})
	if err != nil {
		t.Fatal(err)
	}
	if set.Classes != 4 || set.Train.Len() != 4 || set.Test.Len() != 2 {
		t.Errorf("%d classes, %d and %d examples", set.Classes, set.Train.Len(), set.Test.Len())
	}
	var b device.Batch
	if err := set.Train.Gather(&b, []int32{3, 0, 2}); err != nil {
		t.Fatal(err)
	}
	part := b.Slice(1, 3)
	if b.N() != 3 || !slices.Equal(b.Y, []int32{1, 2, 1}) || b.X != nil || b.CacheKey != set.Train.Key() ||
		!slices.Equal(part.Rows, []int32{0, 2}) || !slices.Equal(part.Y, []int32{2, 1}) {
		t.Errorf("batch %+v, part %+v", b, part)
	}
	if err := set.Test.Batch(&b, 1, 2); err != nil || b.Rows[0] != 1 || b.CacheKey != set.Test.Key() ||
		b.CacheKey == set.Train.Key() {
		t.Errorf("test batch %+v, %v", b, err)
	}
	for want, l := range map[string]data.Labels{"4 training and 0 test examples": {Train: []int32{2, 0, 1, 1}},
		"label 2 of example 0, want 0 to 1": {Train: []int32{2}, Test: []int32{1}, Classes: 2},
		"label -1 of example 1":             {Train: []int32{2, -1}, Test: []int32{1}}} {
		if _, err := data.Indexed("own", l); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	other, err := data.Indexed("own", data.Labels{Train: []int32{2, 0, 1, 1}, Test: []int32{1, 3}})
	if err != nil || other.Fingerprint() == set.Fingerprint() {
		t.Errorf("sets of other labels have one fingerprint, %v", err)
	}
}
