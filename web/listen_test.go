package web

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

func TestListen(t *testing.T) {
	for address, want := range map[string]bool{":0": true, "127.0.0.1:0": true, "0.0.0.0:0": false,
		"localhost:0": true} {
		l, loopback, err := Listen(address)
		if err != nil {
			t.Fatal(err)
		}
		if loopback != want {
			t.Errorf("%s: loopback %v", address, loopback)
		}
		if url := URL(l); !strings.HasPrefix(url, "http://127.0.0.1:") &&
			!strings.HasPrefix(url, "http://localhost:") && !strings.HasPrefix(url, "http://[::1]:") {
			t.Errorf("%s: %s", address, url)
		}
		l.Close()
	}
	taken, _, err := Listen(":0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	for address, want := range map[string]string{"8080": "HOST:PORT", ":" + port: "choose another port",
		":http:": "HOST:PORT", "256.0.0.1:0": "choose another port"} {
		if _, _, err := Listen(address); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// serveIdle serves h and opens n connections that send nothing.
func serveIdle(t *testing.T, h http.Handler, n int) (l net.Listener, idle []net.Conn) {
	t.Helper()
	l, _, err := Listen(":0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, l, h) }()
	for range n {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		idle = append(idle, c)
	}
	t.Cleanup(func() {
		for _, c := range idle {
			c.Close()
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return l, idle
}

// closed waits until the server has closed n connections, and returns which. It gives up after a
// minute.
func closed(idle []net.Conn, n int) map[int]bool {
	gone := map[int]bool{}
	for end := time.Now().Add(time.Minute); len(gone) < n && time.Now().Before(end); {
		for k, c := range idle {
			if gone[k] {
				continue
			}
			_ = c.SetReadDeadline(time.Now().Add(50 * time.Microsecond))
			if _, err := c.Read(make([]byte, 1)); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
				gone[k] = true
			}
		}
	}
	return gone
}

// Beyond the limit the connections that were idle for longest are evicted, so that a new client is
// served at once. Serve ends with its context.
func TestServeBounded(t *testing.T) {
	l, idle := serveIdle(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "here") }),
		maxConnections+100)
	gone := closed(idle, 100)
	for k := range gone {
		if k >= 100 {
			t.Errorf("connection %d was closed, want only the first 100", k)
		}
	}
	if len(gone) != 100 {
		t.Errorf("%d of %d connections were closed, want 100", len(gone), len(idle))
	}
	if _, body := get(t, URL(l)); body != "here" {
		t.Errorf("a new client got %q, want here", body)
	}
}
