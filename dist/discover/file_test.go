package discover

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "peers.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("# three agents\npeers:\n  1: node-b.example.org:4700\n  0: 10.0.0.1:4700\n  2: \"[fd00::2]:4701\"\n")
	f, err := OpenFile(path, 3, nil)
	if err != nil {
		t.Fatal(err)
	}
	for rank, want := range []string{"10.0.0.1:4700", "node-b.example.org:4700", "[fd00::2]:4701"} {
		if got, err := f.Addresses(t.Context(), rank); err != nil || !slices.Equal(got, []string{want}) {
			t.Errorf("agent %d: %v, %v, want %s", rank, got, err, want)
		}
	}
	if _, err := f.Relay(1); err == nil {
		t.Error("a file relays a connection")
	}
	write("peers:\n  0: 10.0.0.1:4700\n  1: 10.0.0.9:4700\n  2: 10.0.0.3:4700\n")
	if got, err := f.Addresses(t.Context(), 1); err != nil || got[0] != "10.0.0.9:4700" {
		t.Errorf("%v, %v, want the address that the file has now", got, err)
	}
	write("peers:\n  0: 10.0")
	if got, err := f.Addresses(t.Context(), 1); err != nil || got[0] != "10.0.0.9:4700" || f.Stats().Trouble != 1 {
		t.Errorf("%v, %v, %+v, want the address that the file had, and one trouble", got, err, f.Stats())
	}
}

func TestFileRefuses(t *testing.T) {
	for text, want := range map[string][]string{
		"":                                     {"expected YAML of the form"},
		"peers: [a:1, b:2]":                    {"expected YAML of the form"},
		"agents:\n  0: a:1\n  1: b:2":          {"expected YAML of the form"},
		"peers:\n  0: a:1\nmore: 1":            {"expected YAML of the form"},
		"peers:\n  0: a:1":                     {"agent 1 is missing: the run has 2 agents, 0 to 1"},
		"peers:\n  0: a:1\n  1: b:2\n  2: c:3": {`"2" is no agent of the run: expected ranks from 0 to 1`},
		"peers:\n  0: a:1\n  '01': b:2":        {`"01" is no agent`, "agent 1 is missing"},
		"peers:\n  0: a:1\n  1: b:2\n  1: c:3": {"agent 1 is listed twice, at b:2 and at c:3"},
		"peers:\n  0: a:1\n  1: a:1":           {"agents 0 and 1 have the same address, a:1"},
		"peers:\n  0: a\n  1: b:x":             {`agent 0 is at "a": write HOST:PORT`, `agent 1 is at "b:x"`},
		"peers:\n  0: :4700\n  1: b:0":         {`agent 0 is at ":4700"`, "agent 1 is at b:0: others cannot know"},
		"peers:\n  0: 0.0.0.0:1\n  1: b:70000": {"agent 0 is at 0.0.0.0:1, which is every address", `"b:70000"`},
		"peers:\n  0: [a:1, a:2]\n  1: b:1":    {`agent 0 is at "[a:1 a:2]"`},
		"peers:\n 0: &a a:1\n 1: *a":           {"anchor"},
	} {
		path := filepath.Join(t.TempDir(), "peers.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := OpenFile(path, 2, nil)
		for _, w := range append(want, path) {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%q: %v, want %s", text, err, w)
			}
		}
	}
	if _, err := OpenFile(t.TempDir(), 2, nil); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a folder: %v", err)
	}
}
