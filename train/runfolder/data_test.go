package runfolder

import (
	"strings"
	"testing"
)

// A run resumes with the decoder that it began with, and the refusal says which.
func TestOtherData(t *testing.T) {
	for _, c := range []struct{ there, here, got, hint string }{
		{"0123-libjpeg", "0123-go", `decoded by "libjpeg", here they are by "go"`, "--jpeg libjpeg"},
		{"0123-go", "0123-libjpeg", `decoded by "go", here they are by "libjpeg"`, "--jpeg go"},
		{"0123-turbo", "0123-libjpeg", `decoded by "turbo"`, "reduced large images"},
		{"0123-go", "4567-libjpeg", "the contents differ", "same files"},
		{"0123", "4567", "the contents differ", "same files"},
	} {
		e := otherData(c.there, c.here)
		if !strings.Contains(e.Got, c.got) || !strings.Contains(e.Hint, c.hint) {
			t.Errorf("%s and %s: %s: %s", c.there, c.here, e.Got, e.Hint)
		}
	}
}
