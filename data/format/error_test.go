package format_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"fspda/data"
	"fspda/data/format"
	"fspda/data/images"
	"fspda/data/text"
)

// A caller finds the error of any reader by one type.
func Example() {
	err := fmt.Errorf("run: %w", &images.FormatError{Path: "train-labels.gz", Got: "magic 0x801 at byte 0",
		Want: "0x803", Hint: "this is a label file; pass the images"})
	var bad *format.Error
	fmt.Println(errors.As(err, &bad), bad.Path)
	fmt.Println(bad)
	// Output:
	// true train-labels.gz
	// data: train-labels.gz: magic 0x801 at byte 0, want 0x803: this is a label file; pass the images
}

var (
	_ *format.Error = (*data.FormatError)(nil)
	_ *format.Error = (*text.FormatError)(nil)
)

func TestErrorWraps(t *testing.T) {
	e := &format.Error{Path: "f", Got: "magic 0x801 at byte 0", Want: "0x803", Err: io.ErrUnexpectedEOF}
	if got := e.Error(); got != "data: f: magic 0x801 at byte 0, want 0x803" ||
		!errors.Is(fmt.Errorf("run: %w", e), io.ErrUnexpectedEOF) {
		t.Errorf("got %s, or the cause is hidden", got)
	}
}
