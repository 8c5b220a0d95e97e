package web

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Labels drop what runs have in common and say what differs, in as few settings as it takes.
func TestLabels(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		configs []string // settings with a semicolon between; empty for none
		want    string
	}{
		{"algorithms", []string{"data: mnist;algo: dsgd;seed: 1", "data: mnist;algo: fspda-sa;seed: 1"},
			"dsgd|fspda-sa"},
		{"a setting, and others that follow from it", []string{"algo: dsgd;alpha: 0.1;eta: 0.2;weight_decay: 1",
			"algo: dsgd;alpha: 0.2;eta: 0.3;weight_decay: 2"}, "alpha 0.1|alpha 0.2"},
		{"two settings", []string{"algo: a;weight_decay: 1", "algo: a;weight_decay: 2", "algo: b;weight_decay: 1"},
			"a, weight decay 1|a, weight decay 2|b, weight decay 1"},
		{"seeds", []string{"algo: a;seed: 1", "algo: a;seed: 2", "algo: b;seed: 1"}, "a|a|b"},
		{"a setting that a run lacks", []string{"algo: a", "algo: a;alpha: 1"}, "alpha –|alpha 1"},
		{"nothing", []string{"algo: a;seed: 1;threads: 2", "algo: a;seed: 2;threads: 4"}, "run0|run1"},
		{"no configuration", []string{"", "algo: a"}, "run0|run1"},
	} {
		var folders []string
		for i, config := range c.configs {
			folder := filepath.Join(t.TempDir(), "run"+string(rune('0'+i)))
			if err := os.Mkdir(folder, 0o755); err != nil {
				t.Fatal(err)
			}
			if config != "" {
				text := strings.ReplaceAll(config, ";", "\n") + "\n"
				if err := os.WriteFile(filepath.Join(folder, "config.yaml"), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			folders = append(folders, folder)
		}
		if got := strings.Join(Labels(folders), "|"); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
