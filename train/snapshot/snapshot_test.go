package snapshot_test

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"

	"fspda/cpu"
	"fspda/device"
	"fspda/train/algo"
	"fspda/train/simnet"
	"fspda/train/snapshot"
)

// Vectors and counters survive encoding, to the bit.
func TestEncodeDecode(t *testing.T) {
	dev := cpu.New()
	one, other := sample(dev), sample(dev)
	dev.Write(one.X, []float32{1, -2.5, 1e-30})
	dev.Write(one.Aux[0], []float32{4, 5, 6})
	dev.Write(one.Buffers, []float32{7})
	one.Grads, one.Time = 12, 3.5
	one.Losses.Add(0.25)
	b, err := one.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Decode(b); err != nil {
		t.Fatal(err)
	}
	again, err := other.Encode()
	if err != nil || !bytes.Equal(b, again) || !reflect.DeepEqual(other.Counters, one.Counters) {
		t.Errorf("%+v reads back as %+v, %v", one.Counters, other.Counters, err)
	}
	for _, bad := range [][]byte{nil, b[:3], b[:len(b)-1], append(slices.Clone(b), 0)} {
		if other.Decode(bad) == nil {
			t.Errorf("%d bytes of %d were accepted", len(bad), len(b))
		}
	}
}

func sample(dev device.Device) *snapshot.Snapshot {
	return &snapshot.Snapshot{Device: dev, X: dev.NewVector(3), Aux: []device.Vector{dev.NewVector(3)},
		Buffers: dev.NewVector(1)}
}

// The memory of edges and the virtual time travel with a snapshot that is to be saved. Without them
// the receiver keeps the memory that it has. A snapshot of an agent with other edges is refused.
func TestEncodeEdges(t *testing.T) {
	dev := cpu.New()
	one, other, stranger := edged(dev, 1, 4), edged(dev, 1, 4), edged(dev, 1, 3)
	one.Save = true
	one.Clock = simnet.ClockState{At: 2, Links: map[int]float64{4: 2.5}}
	one.Edges[1].Count = 7
	dev.Write(one.Edges[1].Vectors[0], []float32{8, 9})
	b, err := one.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Decode(b); err != nil {
		t.Fatal(err)
	}
	got := make([]float32, 2)
	dev.Read(got, other.Edges[1].Vectors[0])
	if other.Edges[1].Count != 7 || !slices.Equal(got, []float32{8, 9}) || !reflect.DeepEqual(other.Clock, one.Clock) {
		t.Errorf("the edge reads back as %+v %v, the clock as %+v", *other.Edges[1], got, other.Clock)
	}
	if err := stranger.Decode(b); err == nil {
		t.Error("the edges of another agent were accepted")
	}
	one.Save = false
	if b, err = one.Encode(); err == nil {
		err = other.Decode(b)
	}
	if err != nil || other.Edges[1].Count != 7 {
		t.Errorf("after a snapshot for an evaluation the edge is %+v, %v", *other.Edges[1], err)
	}
}

// edged is a sample of an agent with edges to two peers.
func edged(dev device.Device, peers ...int) *snapshot.Snapshot {
	sn := sample(dev)
	for _, peer := range peers {
		sn.Edges = append(sn.Edges, &algo.EdgeMemory{Peer: peer, Vectors: []device.Vector{dev.NewVector(2)}})
	}
	return sn
}

// An absent agent has the mean model of the others and no dual.
func TestFillMissing(t *testing.T) {
	dev := cpu.New()
	set := []*snapshot.Snapshot{sample(dev), sample(dev), sample(dev)}
	dev.Write(set[0].X, []float32{1, 2, 3})
	dev.Write(set[2].X, []float32{3, 2, 1})
	dev.Write(set[1].Aux[0], []float32{9, 9, 9})
	set[1].ReplaceAbsent(1, 40, snapshot.Counters{Grads: 5})
	snapshot.FillMissing(set)
	x, dual := make([]float32, 3), make([]float32, 3)
	dev.Read(x, set[1].X)
	dev.Read(dual, set[1].Aux[0])
	if !slices.Equal(x, []float32{2, 2, 2}) || !slices.Equal(dual, []float32{0, 0, 0}) || set[1].Grads != 5 {
		t.Errorf("the absent agent has the model %v, the dual %v and %d gradients", x, dual, set[1].Grads)
	}
}

// A pool gives no more snapshots than it holds.
func TestPool(t *testing.T) {
	p := snapshot.NewPool(snapshot.Circulating)
	p.Fill(func() *snapshot.Snapshot { return &snapshot.Snapshot{} })
	for range snapshot.Circulating {
		if _, err := p.Acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	stopped := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stopped)
	if _, err := p.Acquire(ctx); !errors.Is(err, stopped) {
		t.Errorf("an empty pool returned %v", err)
	}
	made := &snapshot.Snapshot{}
	if p.TryAcquire(func() *snapshot.Snapshot { return made }) != made {
		t.Error("an empty pool did not allocate")
	}
}
