package live

import (
	"os"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// Many exchanges leak neither goroutines, which the synctest bubble would wait for, nor memory.
func TestManyExchanges(t *testing.T) {
	want := 4000
	if os.Getenv("FSPDA_LONG") != "" {
		want = 100_000
	}
	synctest.Test(t, func(t *testing.T) {
		l := newTestNetwork(t, 4, 1<<40)
		for i := range l.slow {
			l.slow[i] = 5 * time.Millisecond
		}
		meets := func() (n int) {
			for _, p := range l.last {
				p.mu.Lock()
				n += p.meets
				p.mu.Unlock()
			}
			return n / 2
		}
		l.run(func() {
			var early runtime.MemStats
			for meets() < want {
				time.Sleep(time.Second)
				if early.HeapAlloc == 0 && meets() > want/10 {
					runtime.GC()
					runtime.ReadMemStats(&early)
				}
			}
			var late runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&late)
			if more := int64(late.HeapAlloc) - int64(early.HeapAlloc); more > 2<<20 {
				t.Errorf("%d bytes more after %d exchanges", more, meets())
			}
			for _, p := range l.last { // enough for the comparison
				p.mu.Lock()
				p.opt.Until = p.clock.T
				p.advanced()
				p.mu.Unlock()
			}
		})
	})
}
