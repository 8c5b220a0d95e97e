//go:build !windows

package cli

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"fspda/cli/traincmd"
)

// commandLines returns the fspda commands in a text, as words.
func commandLines(text string) (lines [][]string) {
	text = strings.ReplaceAll(text, "\\\n", " ")
	for _, m := range regexp.MustCompile(
		`(?m)(?:^|/|"|\s)fspda"? +((?:agent|up|certs)\b[^\n|&#`+"`"+`]*)`).FindAllStringSubmatch(text, -1) {
		lines = append(lines, strings.Fields(strings.NewReplacer(`"`, "", "'", "").Replace(m[1])))
	}
	return lines
}

// checkFlags parses a command line without running it.
func checkFlags(t *testing.T, where string, args []string) {
	t.Helper()
	cmd, rest, err := newRoot(io.Discard, io.Discard).Find(args)
	if err != nil || cmd.Name() != args[0] {
		t.Errorf("%s: fspda %s: %v", where, strings.Join(args, " "), err)
		return
	}
	for i, a := range rest { // what the launcher puts in
		if strings.HasPrefix(a, "$") || strings.HasPrefix(a, "%") {
			rest[i] = "1"
		}
	}
	if err := cmd.ParseFlags(rest); err != nil {
		t.Errorf("%s: fspda %s: %v", where, strings.Join(args, " "), err)
	}
}

// Every fspda command in the launch files and in the manual of many machines is valid.
func TestLaunchCommands(t *testing.T) {
	for name, least := range map[string]int{"../deploy/slurm.sh": 0, "../deploy/fspda-agent@.service": 1,
		"../deploy/kubernetes.yaml": 1, "../docs/many-machines.md": 4} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		lines := commandLines(strings.ReplaceAll(string(text), `"$fspda"`, "fspda"))
		if len(lines) < least {
			t.Errorf("%s: %d commands found, expected %d", name, len(lines), least)
		}
		for _, args := range lines {
			if len(args) > 1 { // else it is only named
				checkFlags(t, name, args)
			}
		}
	}
}

// systemd accepts the unit, with the program at the path that it names.
func TestSystemdUnit(t *testing.T) {
	verify, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("skipped: no systemd-analyze")
	}
	text, err := os.ReadFile("../deploy/fspda-agent@.service")
	if err != nil {
		t.Fatal(err)
	}
	self, err := filepath.Abs(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	unit := filepath.Join(t.TempDir(), "fspda-agent@.service")
	if err := os.WriteFile(unit, bytes.ReplaceAll(text, []byte("/usr/local/bin/fspda"), []byte(self)),
		0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(verify, "verify", "--man=no", unit).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}

// The manifests are YAML of the expected kinds, and the job has an index for each agent.
// deploy/schema checks them against the Kubernetes API.
func TestKubernetesManifests(t *testing.T) {
	text, err := os.ReadFile("../deploy/kubernetes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	type manifest struct {
		Kind string
		Spec struct {
			Completions, Parallelism int
			CompletionMode           string `yaml:"completionMode"`
			Template                 struct {
				Spec struct {
					Containers []struct {
						Command []string
						Env     []struct{ Name, Value string }
					}
				}
			}
		}
	}
	var kinds []string
	dec := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var m manifest
		if err := dec.Decode(&m); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, m.Kind)
		if m.Kind != "Job" {
			continue
		}
		c := m.Spec.Template.Spec.Containers[0]
		checkFlags(t, "kubernetes.yaml", c.Command[1:])
		env := map[string]string{"JOB_COMPLETION_INDEX": "3"}
		for _, e := range c.Env {
			env[e.Name] = e.Value
		}
		at, err := traincmd.ReadLauncherEnv(func(k string) string { return env[k] })
		if err != nil || at.Size != m.Spec.Completions || m.Spec.Parallelism != at.Size ||
			m.Spec.CompletionMode != "Indexed" || at.Master == "" {
			t.Errorf("%+v, %v of %d", at, err, m.Spec.Completions)
		}
	}
	if strings.Join(kinds, " ") != "Service PersistentVolumeClaim Job" {
		t.Errorf("kinds %v", kinds)
	}
}
