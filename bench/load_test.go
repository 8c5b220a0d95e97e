package bench

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
	// Packed images need no decoding, and a copy needs no scaling.
	if files, packed := r.Rows[1].PerCore, r.Rows[2].PerCore; files <= 0 || packed <= files || r.Copies <= packed ||
		r.PackedBar <= 0 {
		t.Errorf("files %.0f, packed %.0f, copies %.0f, bar %.0f a second", files, packed, r.Copies, r.PackedBar)
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
