package data

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func writeFile(t testing.TB, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestFileReadsBothForms(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lists")
	for _, content := range []string{"# two agents\n3 1\t4\n\n0,2\n", " [[3, 1, 4],\n [0, 2]]\n",
		"\ufeff3,1, 4\r\n0 2"} {
		writeFile(t, path, []byte(content))
		got := mustSplit(t, File{Path: path}, make([]int32, 6), 1, 2, 0)
		if !slices.Equal(got[0], []int32{3, 1, 4}) || !slices.Equal(got[1], []int32{0, 2}) {
			t.Errorf("%q is %v, want [[3 1 4] [0 2]]", content, got)
		}
	}
}

func TestFileRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lists")
	for content, want := range map[string]string{
		"":                 "0 lists, want 2",
		"1\n2\n3":          "3 lists, want 2",
		"1\n2 x":           `line 2: "x"`,
		"1\n9999999999":    `line 2: "9999999999"`,
		"1\n6":             "agent 1 lists example 6, want 0 to 5",
		"-1\n2":            "agent 0 lists example -1",
		"1 2\n3 1":         "example 1 is listed by agent 0 and again by agent 1",
		"1 1\n2":           "example 1 is listed by agent 0 and again by agent 0",
		"[[1],[]]":         "the list of agent 1 is empty",
		"[[1],[2.5]]":      "want a list of lists",
		"[[1],[2]] [":      "JSON",
		`[{"a":1}]`:        "want a list of lists",
		"[[1],[99999999]]": "agent 1 lists example 99999999",
	} {
		writeFile(t, path, []byte(content))
		if _, err := (File{Path: path}).Split(make([]int32, 6), 1, 2, 0); err == nil || !strings.Contains(err.Error(),
			want) {
			t.Errorf("%q: error %v, want one with %q", content, err, want)
		}
	}
	if _, err := (File{Path: path + "-none"}).Split(make([]int32, 6), 1, 2, 0); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v, want one about a missing file", err)
	}
}
