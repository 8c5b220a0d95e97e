package traincmd

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"fspda/dist"
	"fspda/internal/lockfile"
	"fspda/internal/testing/disttest"
	"fspda/train/membership"
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
	lockAgent(t, folder)
	g, err := agreement.Open(agreement.Options{Rules: membership.Rules{Agents: 3}, DropAfter: time.Minute,
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

// lockAgent makes the folder of an agent and locks it, as the agent's process does.
func lockAgent(t *testing.T, folder string) {
	t.Helper()
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	l, ok, err := lockfile.TryLock(folder)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	t.Cleanup(func() { _ = l.Unlock() })
}

// The state of a process that was killed is not shown, even if its clock was hours ahead.
func TestStatusOfEndedProcess(t *testing.T) {
	run := t.TempDir()
	for rank, ahead := range []time.Duration{0, 4 * time.Hour} {
		folder := filepath.Join(run, "agents", fmt.Sprintf("%03d", rank))
		if rank == 0 {
			lockAgent(t, folder)
		} else if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(membersStatus{Time: time.Now().Add(ahead), Rank: rank})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, statusFile), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if s, err := readStatus(run, -1); err != nil || s.Rank != 0 {
		t.Errorf("state of agent %d, error %v, want that of agent 0, whose process runs", s.Rank, err)
	}
	if s, err := readStatus(run, 0); err == nil {
		t.Errorf("state of agent %d, whose process has ended", s.Rank)
	}
}
