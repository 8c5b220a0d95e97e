package link

import (
	"os"
	"runtime"
	"testing"
	"time"
)

// Many exchanges between two nodes, of iterations and of sessions, with checkpoints in between,
// leak neither goroutines nor memory. FSPDA_LONG=1 runs 100,000 of each.
func TestManyExchanges(t *testing.T) {
	rounds, each := 10, 100
	if os.Getenv("FSPDA_LONG") != "" {
		each = 10_000
	}
	m := openMesh(t, 2, func(o *settings) { o.Durable = true })
	a, b := openSession(t, m[0], 1), openSession(t, m[1], 0)
	var goroutines int
	var memory uint64
	for k := range rounds {
		for at := 0; at < each; at += 100 {
			swap(t, m, 8, k*each+at, k*each+at+100)
			chat(t, a, b, 100)
			for _, n := range m {
				if err := n.Stable(n.Save(), 0); err != nil {
					t.Fatal(err)
				}
			}
			if t.Failed() {
				return
			}
		}
		if k == 0 { // buffers and tables have reached their final size
			goroutines, memory = runtime.NumGoroutine(), heap()
		}
	}
	if more := int64(heap()) - int64(memory); more > 4<<20 {
		t.Errorf("%d bytes more after %d exchanges than after %d", more, rounds*each, each)
	}
	deadline := time.Now().Add(time.Minute)
	for runtime.NumGoroutine() > goroutines && time.Now().Before(deadline) { // expiring timers
		time.Sleep(20 * time.Millisecond)
	}
	if n := runtime.NumGoroutine(); n > goroutines {
		t.Errorf("%d goroutines after %d exchanges, %d after %d", n, rounds*each, goroutines, each)
	}
	t.Logf("%d exchanges; %d goroutines at first, %d at the end; %d bytes more", rounds*each, goroutines,
		runtime.NumGoroutine(), int64(heap())-int64(memory))
}
