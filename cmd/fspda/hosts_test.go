//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// hosts are network namespaces that stand for machines, joined by a bridge.
type hosts struct {
	t      *testing.T
	prefix string
	n      int
}

// ip runs the command of that name.
func (h *hosts) ip(args ...string) error {
	out, err := exec.Command("ip", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}

func (h *hosts) name(i int) string    { return h.prefix + strconv.Itoa(i) }
func (h *hosts) address(i int) string { return fmt.Sprintf("10.77.0.%d", i+1) }

// openHosts makes n hosts, or skips the test where that is not permitted.
func openHosts(t *testing.T, n int) *hosts {
	t.Helper()
	h := &hosts{t: t, prefix: fmt.Sprintf("fspda%d-", os.Getpid()%10000), n: n}
	hub := h.prefix + "hub"
	if err := h.ip("netns", "add", hub); err != nil {
		t.Skipf("skipped: network namespaces are not permitted: %v", err)
	}
	t.Cleanup(func() { _ = h.ip("netns", "del", hub) })
	h.must("-n", hub, "link", "add", "br0", "type", "bridge")
	h.must("-n", hub, "link", "set", "br0", "up")
	for i := range n {
		h.must("netns", "add", h.name(i))
		t.Cleanup(func() { _ = h.ip("netns", "del", h.name(i)) })
		port := "port" + strconv.Itoa(i)
		h.must("-n", hub, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", h.name(i))
		h.must("-n", hub, "link", "set", port, "master", "br0", "up")
		h.must("-n", h.name(i), "addr", "add", h.address(i)+"/24", "dev", "eth0")
		h.must("-n", h.name(i), "link", "set", "eth0", "up")
		h.must("-n", h.name(i), "link", "set", "lo", "up")
	}
	return h
}

func (h *hosts) must(args ...string) {
	h.t.Helper()
	if err := h.ip(args...); err != nil {
		h.t.Fatal(err)
	}
}

// impair makes the links of all hosts late, lossy and slow. It tells whether the kernel can.
func (h *hosts) impair() bool {
	for i := range h.n {
		out, err := exec.Command("tc", "-n", h.name(i), "qdisc", "add", "dev", "eth0", "root", "netem", "delay", "10ms", "3ms", "loss", "1%", "rate", "100mbit").CombinedOutput()
		if err != nil {
			h.t.Logf("the links stay good ones: tc cannot make them bad here: %s", bytes.TrimSpace(out))
			return false
		}
	}
	return true
}

// run runs an agent on each host, with certificates, and waits for all.
func (h *hosts) run(args []string, dir string) {
	h.t.Helper()
	certs := filepath.Join(dir, "certs")
	if status, _, stderr := call(h.t, "certs", "--out", certs, "--run", "hosts", "-n", strconv.Itoa(h.n)); status != 0 {
		h.t.Fatal(stderr)
	}
	var wg sync.WaitGroup
	for i := range h.n {
		wg.Go(func() {
			own := append([]string{"netns", "exec", h.name(i), os.Args[0], "agent", "--quiet", "--run", "hosts", "--certs", certs, "--join", h.address(0) + ":4700", "--listen", h.address(i) + ":4700",
				"--rank", strconv.Itoa(i), "--out", filepath.Join(dir, "hosts")}, args...)
			cmd := exec.Command("ip", own...)
			cmd.Env = append(os.Environ(), "FSPDA_TEST_AS_PROGRAM=1")
			if out, err := cmd.CombinedOutput(); err != nil {
				h.t.Errorf("agent %d: %v\n%s", i, err, out)
			}
		})
	}
	wg.Wait()
}

// Ten hosts with late, lossy and slow links: the metrics and the weights of one process.
func TestHosts(t *testing.T) {
	if os.Getenv("FSPDA_LONG") == "" {
		t.Skip("skipped: it makes network namespaces and is a minute long; set FSPDA_LONG=1")
	}
	h := openHosts(t, 10)
	args := []string{"--data", "mnist", "--data-dir", mnistFolder(t), "--agents", "10", "--iterations", "500", "--eval-points", "2", "--metrics", "test"}
	if !h.impair() { // then what is above the kernel is bad
		bad := filepath.Join(t.TempDir(), "weather.json")
		text, err := json.Marshal(forecast{Lose: 0.05, Double: 0.05, Late: 0.1})
		if err == nil {
			err = os.WriteFile(bad, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		args = append(args[:len(args):len(args)], "--weather", bad)
	}
	dir := t.TempDir()
	one := filepath.Join(dir, "one")
	plain := args
	if at := len(args) - 2; args[at] == "--weather" {
		plain = args[:at]
	}
	if status, _, stderr := call(t, append([]string{"train", "--quiet", "--out", one}, plain...)...); status != 0 {
		t.Fatal(stderr)
	}
	h.run(args, dir)
	if !t.Failed() {
		sameRun(t, one, filepath.Join(dir, "hosts"))
	}
}
