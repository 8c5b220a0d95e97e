package link

import (
	"testing"
	"time"

	"fspda/dist"
)

// Heartbeats tell where an agent is, what it does, and whom it waits for.
func TestPositions(t *testing.T) {
	m := openMesh(t, 2, func(o *settings) { o.heartbeat, o.Pause = 10*time.Millisecond, 10*time.Millisecond })
	ctx := testContext(t)
	expect := func(want dist.Position) {
		t.Helper()
		var got dist.Advance
		for ctx.Err() == nil {
			got = m[0].Position(1)
			got.Steps = 0
			if got.Position == want {
				return
			}
			time.Sleep(time.Millisecond)
		}
		t.Fatalf("agent 1 is at %+v, want %+v", got, want)
	}
	expect(dist.Position{})
	m[1].Advance(7, dist.Working)
	expect(dist.Position{T: 7, Phase: dist.Working})
	received := make(chan error, 1)
	go func() {
		_, err := receive(ctx, m[1], 0, 3)
		received <- err
	}()
	expect(dist.Position{T: 7, Phase: dist.Waiting})
	if since := m[0].Position(1).Since; since > time.Minute {
		t.Errorf("it has not advanced for %v", since)
	}
	if err := send(ctx, m[0], 1, 3, []float32{1}); err != nil {
		t.Fatal(err)
	}
	if err := <-received; err != nil {
		t.Fatal(err)
	}
	expect(dist.Position{T: 7, Phase: dist.Working})
	before := m[0].Position(1).Steps
	time.Sleep(100 * time.Millisecond)
	if now := m[0].Position(1); now.Steps != before || now.Since < 50*time.Millisecond {
		t.Errorf("an agent that does nothing was seen to advance: %+v", now)
	}
}
