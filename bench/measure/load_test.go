package measure

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"fspda/data"
)

func TestLoad(t *testing.T) {
	o := LoadOptions{Crop: 32, Jobs: 1, Batch: 8, Each: 50 * time.Millisecond,
		Open: func(jpeg data.Decoder, workers int) (*data.Set, error) {
			return data.Open("synthetic-images", data.OpenOptions{TrainSize: 20, TestSize: 1, Crop: 32, JPEG: jpeg,
				Workers: workers})
		}}
	r, err := Load(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Rows) != 3 || r.Rows[0].From != "JPEG, libjpeg" || r.Rows[1].From != "JPEG, go" ||
		r.Rows[2].From != "packed" || r.Images != 20 {
		t.Fatalf("%+v", r)
	}
	for _, row := range r.Rows {
		if row.PerCore <= 0 {
			t.Errorf("%s: %v images a second", row.From, row.PerCore)
		}
	}
	if r.Copies <= 0 || r.PackedBar <= 0 || r.PackedBar > r.Copies {
		t.Errorf("copies %.0f, target %.0f a second", r.Copies, r.PackedBar)
	}
	if out := r.String(); !strings.Contains(out, "packed ") {
		t.Errorf("%s", out)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Load(ctx, o); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %v", err)
	}
}
