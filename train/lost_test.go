package train

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"fspda/device"
	"fspda/train/safetensors"
)

var errOffBus = errors.New("the GPU has fallen off the bus")

// losable is a device that is gone after a number of reads: what is read then is not a number.
type losable struct {
	device.Device
	left atomic.Int64
}

func (d *losable) Err() error {
	if d.left.Load() < 0 {
		return errOffBus
	}
	return nil
}

func (d *losable) Read(dst []float32, src device.Vector) {
	d.Device.Read(dst, src)
	if d.left.Add(-1) < 0 {
		for i := range dst {
			dst[i] = float32(math.NaN())
		}
	}
}

// What a lost device says is not saved: the run ends with its error, and what was saved before
// stays and is whole.
func TestLostDevice(t *testing.T) {
	c, dir := small(), runFolder(t)
	c.Iterations, c.EvalPoints, c.Checkpoint = 3000, 1, 0.02
	s, m := resolve(t, c)
	f, err := OpenFolder(dir, s, false)
	if err != nil {
		t.Fatal(err)
	}
	dev := &losable{Device: cpuDevice}
	dev.left.Store(1 << 40)
	saved := ""
	onStep := func(int) {
		if saved == "" {
			if ck, _, err := f.OpenCheckpoint(s); err == nil && ck != nil && ck.Iteration > 0 {
				saved = ck.Path
				dev.left.Store(0)
			}
		}
	}
	_, err = Run(context.Background(), s, Options{Device: dev, Model: m, Folder: f, NoReport: true, OnStep: onStep})
	if saved == "" {
		t.Skip("the run was over before its first checkpoint")
	}
	if err == nil || !strings.Contains(err.Error(), errOffBus.Error()) {
		t.Fatalf("the run ends with %v", err)
	}
	ck, _, err := f.OpenCheckpoint(s)
	if err != nil || ck == nil {
		t.Fatalf("the last checkpoint: %v", err)
	}
	defer ck.Close()
	file, err := safetensors.Open(filepath.Join(ck.Path, "agents.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	section, err := file.Section("agent0/x")
	if err != nil {
		t.Fatal(err)
	}
	values := make([]float32, s.Dim)
	if err := binary.Read(section, binary.LittleEndian, values); err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(values, func(v float32) bool { return v != v }) {
		t.Errorf("agent 0 in %s is not a number", ck.Path)
	}
}
