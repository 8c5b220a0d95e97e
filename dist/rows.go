package dist

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"

	"fspda/internal/bounded"
)

// readRows reads lines of integers separated by spaces, tabs or commas, and passes each line to
// take, which must not keep the slice. Empty lines and text after # are skipped. Errors begin with
// the line number.
func readRows(r io.Reader, columns int, take func(row []int) error) error {
	in := bufio.NewScanner(r)
	row := make([]int, columns)
	line := 0
	for in.Scan() {
		line++
		text, _, _ := strings.Cut(string(bounded.Unmarked(in.Bytes())), "#")
		fields := strings.FieldsFunc(text, func(c rune) bool { return c == ' ' || c == '\t' || c == ',' || c == '\r' })
		if len(fields) == 0 {
			continue
		}
		if len(fields) != columns {
			return fmt.Errorf("%d: %d numbers, want %d", line, len(fields), columns)
		}
		for k, f := range fields {
			v, err := strconv.Atoi(f)
			if err != nil {
				return fmt.Errorf("%d: %q is not a whole number", line, f)
			}
			row[k] = v
		}
		if err := take(row); err != nil {
			return fmt.Errorf("%d: %w", line, err)
		}
	}
	if err := in.Err(); err != nil {
		return fmt.Errorf("%d: %w", line+1, err)
	}
	return nil
}
