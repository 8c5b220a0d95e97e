package traincmd

import (
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	for row := range strings.Lines(table([]string{"x̄"}, [][3]string{{"a", "ä – 1", "c"}, {"bb", "2", "d"}})) {
		if strings.ContainsRune(row, '\t') {
			t.Error("tabs in a table")
		}
	}
}
