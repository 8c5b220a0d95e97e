package kernels

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// The sources and this package agree on the constants that both have.
func TestConstants(t *testing.T) {
	var all strings.Builder
	for _, text := range Files() {
		all.WriteString(text)
	}
	for name, value := range map[string]int{"MEGAKERNEL_THREADS": MegakernelThreads, "SHARED_SLICE": sharedSlice,
		"MAX_COMMAND_WORDS": maxCommandWords, "CHUNK": chunk, "BYTES_ROWS": bytesRows, "BYTES_COLUMNS": bytesColumns,
		"BYTES_STEP": bytesStep, "BYTES_THREADS": wideThreads, "HEAD_THREADS": headThreads,
		"HEAD_CLASSES": headClasses, "COMBINE_FOURS": combinedNumbers / 4, "COMBINE_MOST": combinedNumbers / 2,
		"NARROW_ROWS":  narrowRows,
		"COLUMN_BLOCK": columnBlock, "COLUMN_THREADS": columnThreads, "NORM_THREADS": normThreads,
		"WITHIN_EACH": withinEach, "SQUARES_BLOCK": squaresBlock, "MATRIX_TILE": matrixTile,
		"NORM_ROWS": normRows, "NORM_LINES": normLines} {
		if !regexp.MustCompile(fmt.Sprintf(`(?m)^#define %s %d\b`, name, value)).MatchString(
			regexp.MustCompile(` +`).ReplaceAllString(all.String(), " ")) {
			t.Errorf("no source defines %s as %d", name, value)
		}
	}
}
