//go:build linux

package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"fspda/docs"
)

// The manual's run on two machines: each host has the program, the configuration and its own
// certificates, and runs its command as written. Then both resume the run, found by a file of their
// addresses, and again with metrics on the first.
func TestTwoMachines(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	t.Parallel() // it mostly waits
	h := openHosts(t, 2, impairment{queue: 10_000})
	page := ""
	for _, p := range docs.Pages() {
		if p.Name == "many-machines" {
			page = p.Text
		}
	}
	files := namedFile.FindAllStringSubmatch(page, -1)
	makeCerts := regexp.MustCompile(`(?m)^fspda certs .*$`).FindString(page)
	commands := map[string][]string{}
	for _, m := range commandBlock.FindAllStringSubmatch(page, -1) {
		if rest, ok := strings.CutPrefix(m[1], onMachine); ok {
			which, _, _ := strings.Cut(rest, " ")
			commands[which] = append(commands[which], m[1])
		}
	}
	if len(files) != 2 || makeCerts == "" || len(commands["first"]) != 3 || len(commands["second"]) != 2 {
		t.Fatalf("the page has changed: %q, %q", files, commands)
	}
	home, env := newWorkspace(t)
	runBlock(t, home, env, makeCerts)
	machines := make([]string, 2)
	for i, certs := range [][]string{{"ca.pem", "agent-000.pem", "agent-000-key.pem"},
		{"ca.pem", "agent-001.pem", "agent-001-key.pem"}} {
		machines[i] = t.TempDir()
		for _, f := range files {
			if err := os.WriteFile(filepath.Join(machines[i], f[1]), []byte(f[2]), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range certs {
			copyFile(t, filepath.Join(home, "certs", name), filepath.Join(machines[i], "certs", name))
		}
	}
	for k, first := range commands["first"] {
		var both sync.WaitGroup
		for i, block := range []string{first, commands["second"][k%2]} {
			both.Go(func() {
				cmd := exec.CommandContext(t.Context(), "ip", "netns", "exec", h.name(i), "sh", "-e", "-c", block)
				cmd.Dir, cmd.Env = machines[i], env
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("%v in\n%s\n%s", err, block, out)
				}
			})
		}
		both.Wait()
	}
	for i, name := range []string{"summary.json", "agents/001"} {
		if _, err := os.Stat(filepath.Join(machines[i], "runs/digits", name)); err != nil {
			t.Error(err)
		}
	}
}

// copyFile copies a file to another machine.
func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o755)
	}
	if err == nil {
		err = os.WriteFile(to, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
