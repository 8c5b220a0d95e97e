package web

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestListen(t *testing.T) {
	for address, want := range map[string]bool{":0": true, "127.0.0.1:0": true, "0.0.0.0:0": false, "localhost:0": true} {
		l, loopback, err := Listen(address)
		if err != nil {
			t.Fatal(err)
		}
		if loopback != want {
			t.Errorf("%s: loopback %v", address, loopback)
		}
		if url := URL(l); !strings.HasPrefix(url, "http://127.0.0.1:") && !strings.HasPrefix(url, "http://localhost:") && !strings.HasPrefix(url, "http://[::1]:") {
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
	for address, want := range map[string]string{"8080": "HOST:PORT", ":" + port: "choose another port", ":http:": "HOST:PORT", "256.0.0.1:0": "choose another port"} {
		if _, _, err := Listen(address); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// Connections beyond the limit are closed at once; when others leave there is room again. Serve ends with its context.
func TestServeBounded(t *testing.T) {
	l, _, err := Listen(":0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- Serve(ctx, l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "here") }))
	}()
	var idle []net.Conn
	closed := 0
	for range mostConnections + 100 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		idle = append(idle, c)
	}
	_, _ = idle[len(idle)-1].Read(make([]byte, 1)) // the last one beyond the limit: all were seen
	for _, c := range idle {
		_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
		if _, err := c.Read(make([]byte, 1)); err == io.EOF || err != nil && strings.Contains(err.Error(), "reset") {
			closed++
		}
	}
	if closed != 100 {
		t.Errorf("%d of %d connections were closed, want 100", closed, len(idle))
	}
	for _, c := range idle {
		c.Close()
	}
	answered := false
	for end := time.Now().Add(5 * time.Second); !answered && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if r, err := http.Get(URL(l)); err == nil {
			b, _ := io.ReadAll(r.Body)
			r.Body.Close()
			answered = string(b) == "here"
		}
	}
	if !answered {
		t.Error("there is no room when all have left")
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
