package cuda

import (
	"slices"
	"testing"
	"time"

	"fspda/cuda/executor"
	"fspda/device"
	"fspda/internal/testing/fakegpu"
)

// Writes to a GPU that is busy wait for pinned memory instead of taking more and more.
func TestWritesTakeLittlePinnedMemory(t *testing.T) {
	d, m := openFake(t, fakegpu.Options{EventDelay: 200 * time.Millisecond}, false)
	const vectors, n = 3 * maxUploads, 100_000
	host := make([]float32, n)
	for i := range host {
		host[i] = float32(i % 1001)
	}
	var all []device.Vector
	for range vectors {
		all = append(all, d.NewVector(n))
	}
	before := m.Count("MemHostAlloc")
	for _, x := range all {
		d.Write(x, host)
	}
	if taken := m.Count("MemHostAlloc") - before; taken > maxUploads {
		t.Errorf("%d vectors were copied through %d buffers of pinned memory, want %d at most", vectors, taken,
			maxUploads)
	}
	staging := d.Staging(1, 10, n)
	if took := uint64(m.Count("MemHostAlloc")-before) * executor.ChunkBytes; staging < took || staging > 2*took {
		t.Errorf("the forecast of pinned memory is %d bytes, and %d were taken", staging, took)
	}
	if small := d.Staging(1, 10, 10); small >= staging {
		t.Errorf("the forecast for small vectors is %d bytes, that for large ones %d", small, staging)
	}
	got := make([]float32, n)
	if d.Read(got, all[vectors-1]); !slices.Equal(got, host) {
		t.Error("the last vector has other numbers than were written")
	}
}
