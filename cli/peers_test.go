//go:build !windows

package cli

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fspda/cli/command"
	"fspda/internal/testing/disttest"
)

// writePeers writes a file with the addresses of agents.
func writePeers(t *testing.T, path string, at func(agent int) string, agents int) {
	t.Helper()
	text := "peers:\n"
	for i := range agents {
		text += fmt.Sprintf("  %d: %s\n", i, at(i))
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// localPeers writes a file with addresses of this machine.
func localPeers(t *testing.T, agents int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "peers.yaml")
	writePeers(t, path, func(int) string { return fmt.Sprint("127.0.0.1:", disttest.UnusedPort(t)) }, agents)
	return path
}

// Processes that find each other by a file of addresses, of which two are killed and started again,
// agent 0 among them, have the metrics and the weights of one process, bit for bit.
func TestPeersAreTrain(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	t.Parallel() // it mostly waits
	const agents = 3
	dir := t.TempDir()
	one, many, certs := filepath.Join(dir, "one"), filepath.Join(dir, "many"), filepath.Join(dir, "certs")
	args := []string{"--data-train", "400", "--data-test", "100", "--hidden", "6", "--batch", "16", "--agents",
		strconv.Itoa(agents), "--iterations", "1500", "--eval-points", "6", "--checkpoint-every", "0.1"}
	if status, _, stderr := call(t, append([]string{"train", "--quiet", "--out", one}, args...)...); status != 0 {
		t.Fatal(stderr)
	}
	if status, _, stderr := call(t, "certs", "--run", "listed", "-n", "3", "--out", certs); status != 0 {
		t.Fatal(stderr)
	}
	// a gradient takes 2 ms, so that the run is longer than the time until the kills
	args = append(args, "--run", "listed", "--certs", certs, "--peers", localPeers(t, agents), "--out", many,
		"--gradient-time", "0.002")
	kills := map[int]time.Duration{0: 1600 * time.Millisecond, 1: 1000 * time.Millisecond}
	var killed atomic.Int32
	var wg sync.WaitGroup
	for rank := range agents {
		wg.Go(func() {
			for try := 0; ; try++ {
				cmd := exec.Command(os.Args[0], append([]string{"agent", "--rank", strconv.Itoa(rank)}, args...)...)
				var said bytes.Buffer
				cmd.Env, cmd.Stderr = append(os.Environ(), "FSPDA_TEST_AS_PROGRAM=1"), &said
				if err := cmd.Start(); err != nil {
					t.Error(err)
					return
				}
				if after, ok := kills[rank]; ok && try == 0 {
					time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
				}
				err := cmd.Wait()
				if err == nil || cmd.ProcessState.ExitCode() >= 0 {
					if err != nil {
						t.Errorf("agent %d: %v\n%s", rank, err, said.Bytes())
					}
					return
				}
				killed.Add(1)
			}
		})
	}
	wg.Wait()
	if n := killed.Load(); int(n) != len(kills) {
		t.Errorf("%d processes were killed, want %d", n, len(kills))
	}
	if !t.Failed() {
		sameRun(t, one, many)
	}
}

// A file of addresses that does not fit the run is refused, with advice, and so are flags that it
// replaces.
func TestPeersRefusals(t *testing.T) {
	dir := t.TempDir()
	two, far := localPeers(t, 2), filepath.Join(dir, "far.yaml")
	writePeers(t, far, func(i int) string { return fmt.Sprintf("10.0.0.%d:4700", i+1) }, 2)
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no file":   {[]string{"--peers", filepath.Join(dir, "none"), "--insecure"}, "none: no such file"},
		"missing":   {[]string{"--peers", two, "--agents", "3", "--insecure"}, "agent 2 is missing"},
		"too many":  {[]string{"--peers", localPeers(t, 3), "--insecure"}, `"2" is no agent of the run`},
		"join":      {[]string{"--peers", two, "--join", "127.0.0.1:1", "--insecure"}, "leave --join out"},
		"nats":      {[]string{"--peers", two, "--nats", "nats://127.0.0.1:1", "--insecure"}, "leave --nats out"},
		"direct":    {[]string{"--peers", two, "--direct", "off", "--insecure"}, "leave --direct out"},
		"advertise": {[]string{"--peers", two, "--advertise", "h:1", "--insecure"}, "leave --advertise out"},
		"listen":    {[]string{"--peers", two, "--listen", "here", "--insecure"}, `--listen: "here" is not an address`},
		"open":      {[]string{"--peers", far, "--insecure"}, "anybody could join"},
		"no certs":  {[]string{"--peers", far}, "--certs is missing"},
	} {
		args := append([]string{"agent", "--agents", "2", "--rank", "1", "--data-train", "100", "--data-test", "20",
			"--batch", "8", "--out", filepath.Join(dir, "out")}, c.args...)
		status, _, stderr := call(t, args...)
		if status != command.ExitBadInput || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: exit status %d, %s, want %s", name, status, stderr, c.want)
		}
	}
}

// A port that another process uses is named.
func TestPeersPortTaken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "peers.yaml")
	port := disttest.UnusedPort(t)
	writePeers(t, file, func(i int) string { return fmt.Sprint("127.0.0.1:", port+i) }, 2)
	l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	status, _, stderr := call(t, "agent", "--agents", "2", "--rank", "0", "--peers", file, "--insecure", "--data-train",
		"100", "--data-test", "20", "--batch", "8", "--out", filepath.Join(t.TempDir(), "out"))
	if status != command.ExitBadInput || !strings.Contains(stderr, fmt.Sprint("127.0.0.1:", port)) ||
		!strings.Contains(stderr, "is the port taken?") {
		t.Errorf("exit status %d, %s", status, stderr)
	}
}
