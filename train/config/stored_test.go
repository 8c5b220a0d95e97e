package config

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Configurations that earlier versions stored have the fingerprint that these versions computed.
// testdata/stored has a folder for each released version and for some commits, with what the
// program wrote. If this test fails after a key was added, the key lacks Since; if a key was
// changed, run folders of that version cannot be resumed. A file that has all keys is written as it
// was read.
func TestStoredFingerprints(t *testing.T) {
	lists, err := filepath.Glob("testdata/stored/*/fingerprints.json")
	if err != nil || len(lists) < 2 {
		t.Fatalf("%d versions, %v", len(lists), err)
	}
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			t.Fatal(err)
		}
		var want map[string]string
		if err := json.Unmarshal(text, &want); err != nil || len(want) < 20 {
			t.Fatalf("%s: %d fingerprints, %v", list, len(want), err)
		}
		for name, fingerprint := range want {
			file := filepath.Join(filepath.Dir(list), name+".yaml")
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			c := Default()
			if err := c.Parse(file, text); err != nil {
				t.Error(err)
			} else if got := c.Fingerprint(); got != fingerprint {
				t.Errorf("%s: fingerprint %s, want %s", file, got, fingerprint)
			} else if complete := len(c.explicit) == 0 && strings.Contains(string(text), "layer_lr:"); complete &&
				withKeysOf(string(text), string(c.YAML())) != string(text) {
				t.Errorf("%s is written as\n%s", file, c.YAML())
			}
		}
	}
}

// withKeysOf returns the lines of a configuration without the keys that an older one lacks.
func withKeysOf(older, text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		name, _, _ := strings.Cut(line, ":")
		if k, ok := Lookup(name); !ok || k.Since == "" || strings.Contains("\n"+older, "\n"+name+":") {
			b.WriteString(line)
		}
	}
	return b.String()
}
