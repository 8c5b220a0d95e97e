package link

import (
	"context"
	"net"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"fspda/dist/discover"
)

// A thousand agents on a ring, in one process over TCP: the links of agent 0 and of the others, the
// processor time of idle links, and a message around the ring. FSPDA_LONG=1 runs it with a thousand
// agents and prints what it has measured.
func TestThousandAgents(t *testing.T) {
	n, idle := 24, 100*time.Millisecond
	if os.Getenv("FSPDA_LONG") != "" {
		n, idle = 1000, 30*time.Second
	}
	before := memory()
	m := make(mesh, n)
	for i := range m {
		o := options(t, i, n)
		o.Listen, o.Dim, o.Discovery = "127.0.0.1:0", 1000, addressBook{m: m}
		o.Near = []int{(i + n - 1) % n, (i + 1) % n}
		node, err := Open(o.Options)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(node.Close)
		m[i] = node
	}
	for i := range m {
		if err := m[i].Start(nil, 0); err != nil {
			t.Fatal(err)
		}
		for ctx := testContext(t); i > 0 && m[i].ConnectedPeers() < 1; time.Sleep(time.Millisecond) {
			if ctx.Err() != nil { // One after the other, on a machine that may be loaded.
				t.Fatalf("agent %d is not connected", i)
			}
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	for i := range m {
		if err := m[i].Ready(ctx); err != nil {
			t.Fatal(err)
		}
	}
	links := 0
	for i := range m {
		got := m[i].ConnectedPeers()
		if links += got; i > 0 && got > 3 || i == 0 && got != n-1 {
			t.Errorf("agent %d of %d is connected to %d agents", i, n, got)
		}
	}
	for i := range m { // A message goes once around the ring.
		if err := send(ctx, m[i], (i+1)%n, 5, []float32{float32(i)}); err != nil {
			t.Fatal(err)
		}
		if got, err := receive(ctx, m[(i+1)%n], i, 5); err != nil || got[0] != float32(i) {
			t.Fatalf("agent %d received %v, %v", (i+1)%n, got, err)
		}
	}
	for _, node := range m { // As if the message had gone long ago.
		for _, p := range node.others() {
			p.mu.Lock()
			p.used = time.Now().Add(-inUse)
			p.mu.Unlock()
		}
	}
	frames := func() (all uint64) {
		for i := range m {
			all += m[i].Stats().SentFrames
		}
		return all
	}
	began, used, sent := time.Now(), processorTime(t), frames()
	time.Sleep(idle)
	took := time.Since(began).Seconds()
	t.Logf("%d agents: %d ends of links, %.1f MB, %.0f kB an end; idle: %.3f cores, %.1f frames a second", n, links,
		memory()-before, (memory()-before)*1000/float64(links), (processorTime(t)-used).Seconds()/took,
		float64(frames()-sent)/took)
}

// addressBook is a Discovery of nodes in this process.
type addressBook struct{ m mesh }

func (addressBook) Start(context.Context, discover.Agent) error { return nil }
func (addressBook) Stats() discover.Stats                       { return discover.Stats{} }
func (addressBook) Close()                                      {}
func (addressBook) Relay(int) (net.Conn, error)                 { return nil, errInjected }

func (b addressBook) Addresses(_ context.Context, agent int) ([]string, error) {
	return b.m[agent].addresses(), nil
}

// memory returns the megabytes of heap and stacks after a collection.
func memory() float64 {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return float64(s.HeapAlloc+s.StackInuse) / 1e6
}

func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
