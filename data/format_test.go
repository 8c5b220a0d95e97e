package data

import (
	"errors"
	"fmt"
	"io"
	"testing"
)

func TestFormatErrorSaysAll(t *testing.T) {
	e := &FormatError{Path: "train-labels.gz", Got: "magic 0x801 at byte 0", Want: "0x803",
		Hint: "this is a label file; pass the images"}
	if got := e.Error(); got != "data: train-labels.gz: magic 0x801 at byte 0, want 0x803: this is a label file; "+
		"pass the images" {
		t.Errorf("got %s", got)
	}
	e.Hint, e.Err = "", io.ErrUnexpectedEOF
	if got := e.Error(); got != "data: train-labels.gz: magic 0x801 at byte 0, want 0x803" ||
		!errors.Is(fmt.Errorf("run: %w", e), io.ErrUnexpectedEOF) {
		t.Errorf("got %s, or the cause is hidden", got)
	}
}
