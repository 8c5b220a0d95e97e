//go:build linux

package cli

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fspda/internal/rng"
)

// hosts are network namespaces that stand for machines. Each has one network card whose other end
// is in this process, which carries the frames. Links can thus be as bad as a test wants, on every
// kernel.
type hosts struct {
	t      *testing.T
	prefix string
	cards  []*os.File
	bad    impairment

	mu    sync.Mutex
	draw  rng.Stream
	ports map[[6]byte]int // by the address of the card

	carried, lost atomic.Int64
}

// impairment describes what happens to frames that leave a host, as with netem.
type impairment struct {
	delay, jitter time.Duration // a frame is late by delay, give or take up to jitter: some overtake others
	loss          float64
	rate          float64 // bytes a second; 0: no limit
	queue         int     // frames that wait at most; the rest are lost
}

// ip runs the command of that name.
func (h *hosts) ip(args ...string) error {
	out, err := exec.Command("ip", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}

func (h *hosts) must(args ...string) {
	h.t.Helper()
	if err := h.ip(args...); err != nil {
		h.t.Fatal(err)
	}
}

func (h *hosts) name(i int) string    { return h.prefix + strconv.Itoa(i) }
func (h *hosts) address(i int) string { return fmt.Sprintf("10.0.0.%d", i+1) }

// openHosts makes n hosts, or skips the test if that is not permitted.
func openHosts(t *testing.T, n int, bad impairment) *hosts {
	t.Helper()
	h := &hosts{t: t, prefix: fmt.Sprintf("fspda%d-", os.Getpid()%10000), bad: bad, draw: rng.New(1, "hosts"),
		ports: map[[6]byte]int{}}
	for i := range n {
		if err := h.ip("netns", "add", h.name(i)); err != nil {
			t.Skipf("skipped: network namespaces are not permitted: %v", err)
		}
		t.Cleanup(func() { _ = h.ip("netns", "del", h.name(i)) })
		card, err := openCard(h.name(i))
		if err != nil {
			t.Skipf("skipped: a network card cannot be made: %v", err)
		}
		t.Cleanup(func() { card.Close() })
		h.cards = append(h.cards, card)
		h.must("link", "set", h.name(i), "netns", h.name(i))
		h.must("-n", h.name(i), "link", "set", h.name(i), "name", "eth0")
		h.must("-n", h.name(i), "addr", "add", h.address(i)+"/24", "dev", "eth0")
		h.must("-n", h.name(i), "link", "set", "eth0", "up")
		h.must("-n", h.name(i), "link", "set", "lo", "up")
	}
	for i := range n {
		go h.carry(i)
	}
	return h
}

// openCard makes a network card of that name; its frames are read from and written to the file.
func openCard(name string) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	request, err := unix.NewIfreq(name)
	if err == nil {
		request.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// carry delivers the frames that leave host i, until its card is removed.
func (h *hosts) carry(i int) {
	var free time.Time // when the link has sent all that it was given
	var waiting atomic.Int64
	for b := make([]byte, 1<<16); ; {
		n, err := h.cards[i].Read(b)
		if err != nil {
			return
		}
		if n < 14 {
			continue
		}
		to, late, lost := h.route(i, b)
		if lost || waiting.Load() >= int64(h.bad.queue) {
			h.lost.Add(1)
			continue
		}
		if now := time.Now(); free.Before(now) {
			free = now
		}
		if h.bad.rate > 0 {
			free = free.Add(time.Duration(float64(n) / h.bad.rate * float64(time.Second)))
		}
		frame := bytes.Clone(b[:n])
		waiting.Add(1)
		time.AfterFunc(time.Until(free)+late, func() {
			waiting.Add(-1)
			h.carried.Add(1)
			for _, k := range to {
				_, _ = h.cards[k].Write(frame) // the host may just be taken down
			}
		})
	}
}

// route returns the receivers of a frame of host i, all others if unknown, and what happens to it.
func (h *hosts) route(i int, frame []byte) (to []int, late time.Duration, lost bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ports[[6]byte(frame[6:12])] = i
	if k, ok := h.ports[[6]byte(frame[:6])]; ok {
		to = []int{k}
	} else {
		for k := range h.cards {
			if k != i {
				to = append(to, k)
			}
		}
	}
	late = h.bad.delay + time.Duration((2*h.draw.Float64()-1)*float64(h.bad.jitter))
	return to, late, h.draw.Float64() < h.bad.loss
}

// command returns a command that runs on host i.
func (h *hosts) command(i int, args ...string) *exec.Cmd {
	cmd := exec.Command("ip", append([]string{"netns", "exec", h.name(i)}, args...)...)
	cmd.Env = append(os.Environ(), "FSPDA_TEST_AS_PROGRAM=1")
	return cmd
}

// run runs an agent on each host, with certificates, and waits for all.
func (h *hosts) run(args []string, dir string) {
	h.t.Helper()
	certs := filepath.Join(dir, "certs")
	if status, _, stderr := call(h.t, "certs", "--out", certs, "--run", "hosts", "-n",
		strconv.Itoa(len(h.cards))); status != 0 {
		h.t.Fatal(stderr)
	}
	var wg sync.WaitGroup
	for i := range h.cards {
		wg.Go(func() {
			own := append([]string{os.Args[0], "agent", "--quiet", "--run", "hosts", "--certs", certs, "--join",
				h.address(0) + ":4700", "--listen", h.address(i) + ":4700",
				"--rank", strconv.Itoa(i), "--out", filepath.Join(dir, "hosts")}, args...)
			if out, err := h.command(i, own...).CombinedOutput(); err != nil {
				h.t.Errorf("agent %d: %v\n%s", i, err, out)
			}
		})
	}
	wg.Wait()
}

// Ten hosts with late, lossy and slow links have the metrics and the weights of one process.
func TestHosts(t *testing.T) {
	if os.Getenv("FSPDA_LONG") == "" {
		t.Skip("skipped: it makes network namespaces and is a minute long; set FSPDA_LONG=1")
	}
	h := openHosts(t, 10, impairment{delay: 10 * time.Millisecond, jitter: 3 * time.Millisecond, loss: 0.01,
		rate: 100e6 / 8, queue: 1000})
	args := []string{"--data", "mnist", "--data-dir", mnistFolder(t), "--agents", "10", "--iterations", "500",
		"--eval-points", "2", "--metrics", "test"}
	dir := t.TempDir()
	one := filepath.Join(dir, "one")
	if status, _, stderr := call(t, append([]string{"train", "--quiet", "--out", one}, args...)...); status != 0 {
		t.Fatal(stderr)
	}
	begin := time.Now()
	h.run(args, dir)
	if t.Failed() {
		return
	}
	t.Logf("%v; %d frames carried, %d lost", time.Since(begin).Round(time.Second), h.carried.Load(), h.lost.Load())
	if h.lost.Load() == 0 {
		t.Error("no frame was lost")
	}
	sameRun(t, one, filepath.Join(dir, "hosts"))
}
