package dist

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/iotest"
)

func TestReadRows(t *testing.T) {
	var got []string
	take := func(row []int) error { got = append(got, fmt.Sprint(row)); return nil }
	if err := readRows(strings.NewReader("\ufeff1 2\n#x\n\n 3,\t-4 # y\r\n5 6"), 2, take); err != nil {
		t.Fatal(err)
	}
	if s := fmt.Sprint(got); s != "[[1 2] [3 -4] [5 6]]" {
		t.Errorf("rows %s", s)
	}
}

func TestReadRowsErrors(t *testing.T) {
	bad := errors.New("no good")
	refuse := func(row []int) error {
		if row[0] == 7 {
			return bad
		}
		return nil
	}
	err := readRows(strings.NewReader("1\n7\n"), 1, refuse)
	if !errors.Is(err, bad) || !strings.HasPrefix(err.Error(), "2: ") {
		t.Errorf("refused row: %v", err)
	}
	broken := errors.New("disk on fire")
	err = readRows(iotest.ErrReader(broken), 1, refuse)
	if !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "1: ") {
		t.Errorf("broken reader: %v", err)
	}
}
