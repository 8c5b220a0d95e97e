package traincmd

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"fspda/dist"
	"fspda/internal/testing/disttest"
	"fspda/train/membership/agreement"
	"fspda/train/process"
)

// alone is the network of a process that hears no other one.
type alone struct{ process.Network }

func (alone) Position(int) dist.Advance   { return dist.Advance{} }
func (alone) SilentFor(int) time.Duration { return time.Minute }

// While a drop waits for a majority, the members are still shown, the agent among them, and that no
// majority is heard.
func TestStatusWhileDropWaits(t *testing.T) {
	t.Parallel() // it mostly waits
	run := t.TempDir()
	folder := filepath.Join(run, "agents", "000")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	g, err := agreement.Open(agreement.Options{Agents: 3, DropAfter: time.Minute,
		Sessions: disttest.NewNetwork(3, 1, time.Millisecond).Start(0)})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	m := &membersTeller{group: g, net: alone{}, folder: folder, address: func(int) string { return "" },
		log: zap.NewNop()}
	ctx, quit := context.WithCancel(t.Context())
	var telling sync.WaitGroup
	defer telling.Wait()
	defer quit()
	if err := os.WriteFile(filepath.Join(folder, dropFile), []byte("2"), 0o644); err != nil {
		t.Fatal(err)
	}
	telling.Go(func() { m.tell(ctx) })
	telling.Go(func() { m.takeDrops(ctx) })
	var taken time.Time
	var s membersStatus
	for begin := time.Now(); taken.IsZero() || !s.Time.After(taken); time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(folder, dropFile)); os.IsNotExist(err) && taken.IsZero() {
			taken = time.Now()
		}
		if got, err := readStatus(run, -1); err == nil {
			s = got
		}
		if time.Since(begin) > 2*time.Minute {
			t.Fatalf("the members are not told while a drop waits: the drop was taken %v, status of %v", taken, s.Time)
		}
	}
	if s.Leader != -1 || len(s.Agents) != 3 || !s.Agents[2].Member || s.Agents[2].Lives != 0 {
		t.Errorf("status %+v, want three members without a leader", s)
	}
	var out bytes.Buffer
	if err := s.print(&out); err != nil || !strings.Contains(out.String(), "no majority of the members") {
		t.Errorf("error %v, text %q", err, out.String())
	}
}
