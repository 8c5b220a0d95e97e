package web

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// attack is the behaviour of a hostile client on one connection.
type attack func(c net.Conn, replies io.Writer, k int)

// attacks lists the kinds of hostile clients.
var attacks = []attack{
	func(c net.Conn, replies io.Writer, _ int) { _, _ = io.Copy(replies, c) }, // is silent until it is disconnected
	func(c net.Conn, _ io.Writer, _ int) { // sends a header byte by byte
		for _, b := range []byte("GET /api/run?run=one HTTP/1.1\r\nHost: localhost\r\nX: " +
			"yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy") {
			if _, err := c.Write([]byte{b}); err != nil {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	},
	func(c net.Conn, _ io.Writer, _ int) { // follows all runs and never reads
		fmt.Fprint(c, "GET /api/events?run=one&run=figure+1/storm HTTP/1.1\r\nHost: localhost\r\n\r\n")
		time.Sleep(time.Second)
	},
	func(c net.Conn, replies io.Writer, _ int) { // repeats the most expensive request
		go func() { _, _ = io.Copy(replies, c) }()
		for {
			if _, err := fmt.Fprint(c, "GET /api/run?run=one HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
				return
			}
		}
	},
	func(c net.Conn, replies io.Writer, _ int) { // forges a cross-site request
		fmt.Fprint(c, "POST /api/steer HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\nContent-Type: "+
			"text/plain\r\nContent-Length: 29\r\n\r\n"+`{"run":"one","action":"stop"}`)
		_, _ = io.Copy(replies, c)
	},
	func(c net.Conn, _ io.Writer, k int) { // sends random bytes
		r := rand.New(rand.NewPCG(1, uint64(k)))
		noise := make([]byte, 4096)
		for i := range noise {
			noise[i] = byte(r.Uint32())
		}
		fmt.Fprint(c, "GET /")
		_, _ = c.Write(noise)
	},
}

// A hundred hostile clients reconnect as soon as they are disconnected. No action reaches the run,
// the server stays within its share of the processors and allocates little memory, and it answers a
// normal client at once afterwards.
func TestHostileClients(t *testing.T) {
	const clients, seconds, share = 100, 2, 0.015
	run := &fakeRun{}
	s, err := NewServer(Options{Dir: twoRuns(t), Live: run.live(), Token: NewToken(), Loopback: true, Share: share})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	l, _ := serveIdle(t, s, 0)
	begin, before := time.Now(), heapInUse()
	var replies answers
	var all sync.WaitGroup
	goesOn := func() bool { // a busy machine may leave the server no time to answer the first client
		passed := time.Since(begin)
		return passed < seconds*time.Second || replies.n.Load() == 0 && passed < time.Minute
	}
	for k := range clients {
		all.Go(func() {
			for again := 0; goesOn(); again++ {
				c, err := net.DialTimeout("tcp", l.Addr().String(), time.Second)
				if err != nil {
					continue
				}
				left := max(time.Until(begin.Add(seconds*time.Second)), time.Second/4)
				_ = c.SetDeadline(time.Now().Add(left))
				attacks[k%len(attacks)](c, &replies, k+clients*again)
				c.Close()
				// without a pause the kernel's listen queue fills up, and takes half a minute to
				// drain
				time.Sleep(50 * time.Millisecond)
			}
		})
	}
	all.Wait()
	passed := time.Since(begin)
	allowed := (burst + time.Duration(share*float64(runtime.GOMAXPROCS(0))/3*float64(passed))) / requestCost
	if got := replies.n.Load(); got > int64(allowed) || got < 1 {
		t.Errorf("in %v the server gave %d responses, want 1 to %d", passed, got, allowed)
	}
	if more := heapInUse() - before; more > 64<<20 {
		t.Errorf("the server allocated %d bytes, want at most 64 MiB", more)
	}
	if len(run.did) > 0 {
		t.Errorf("the run received the actions %v", run.did)
	}
	client := http.Client{Timeout: time.Minute}
	r, err := client.Get(URL(l) + "api/runs")
	if err != nil {
		t.Fatalf("afterwards: %v", err)
	}
	if r.Body.Close(); r.StatusCode != http.StatusOK {
		t.Errorf("afterwards: status %d", r.StatusCode)
	}
}

// answers counts HTTP responses.
type answers struct{ n atomic.Int64 }

func (a *answers) Write(b []byte) (int, error) {
	a.n.Add(int64(bytes.Count(b, []byte("HTTP/1.1 "))))
	return len(b), nil
}

// heapInUse returns the bytes of heap and stacks in use.
func heapInUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
