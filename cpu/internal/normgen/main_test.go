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
	}
}

func TestMainWrites(t *testing.T) {
	t.Chdir(t.TempDir())
	main()
	for _, name := range []string{asmFile, stubFile} {
		if text, err := os.ReadFile(name); err != nil || !strings.Contains(string(text), "maxPoolGradAVX2") {
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

// between returns the lines from a label to the first that begins so.
func between(lines []string, label, end string) (inside []string) {
	for _, l := range lines {
		switch {
		case l == label+":":
			inside = []string{}
		case inside != nil && strings.HasPrefix(l, end):
			return inside
		case inside != nil:
			inside = append(inside, l)
		}
	}
	return inside
}

// count is the number of lines that begin with an instruction.
func count(lines []string, op string) (n int) {
	for _, l := range lines {
		if l == op || strings.HasPrefix(l, op+" ") {
			n++
		}
	}
	return n
}

// Every function leaves the upper halves of registers as others expect them, and goes past the cache only where its name says so.
func TestEveryFunction(t *testing.T) {
	for name, lines := range functions(t) {
		if returns, zeroed := count(lines, "RET"), count(lines, "VZEROUPPER"); returns == 0 || zeroed != returns && name != "storeFence" {
			t.Errorf("%s returns %d times and zeroes upper halves %d times", name, returns, zeroed)
		}
		if past := count(lines, "VMOVNTPS") > 0; past != strings.Contains(name, "Stream") {
			t.Errorf("%s: stores past the cache: %v", name, past)
		}
	}
}
