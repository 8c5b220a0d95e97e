package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The files in the repository are what the generator writes.
func TestNoDiff(t *testing.T) {
	files, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join("..", "..", name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not what the generator says: run go generate ./cpu", name)
		}
		first, _, _ := strings.Cut(string(want), "\n")
		if !regexp.MustCompile(`^// Code generated .* DO NOT EDIT\.$`).MatchString(first) {
			t.Errorf("%s begins with %q", name, first)
		}
	}
}

func TestMainWrites(t *testing.T) {
	t.Chdir(t.TempDir())
	main()
	for _, name := range []string{asmFile, stubFile} {
		if text, err := os.ReadFile(name); err != nil || !strings.Contains(string(text), "sigmoidsAVX512") {
			t.Errorf("%s: %v, %d bytes", name, err, len(text))
		}
	}
}

func TestWriteSaysWhy(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := write(map[string][]byte{filepath.Join("absent", "x.s"): nil}); err == nil {
		t.Error("writing into a folder that is not there succeeded")
	}
}

// functions returns the instructions of every function by name.
func functions(t *testing.T) map[string][]string {
	t.Helper()
	files, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	all, name := map[string][]string{}, ""
	start := regexp.MustCompile(`^TEXT ·(\w+)\(SB\)`)
	for _, line := range strings.Split(string(files[asmFile]), "\n") {
		if m := start.FindStringSubmatch(line); m != nil {
			name = m[1]
		} else if name != "" && strings.TrimSpace(line) != "" {
			all[name] = append(all[name], strings.TrimSpace(line))
		}
	}
	return all
}

// count is the number of lines between the labels from and to that begin with op. No label from means the beginning.
func count(lines []string, from, to, op string) int {
	n, inside := 0, from == ""
	for _, l := range lines {
		switch {
		case l == from+":":
			inside = true
		case inside && l == to+":":
			return n
		case inside && strings.HasPrefix(l, op+" "):
			n++
		}
	}
	return n
}
