package cuda

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"fspda/cuda/executor"
	"fspda/device"
	"fspda/internal/testing/fakegpu"
	"fspda/model"
	"fspda/train"
)

// openTwo opens both GPUs of a machine.
func openTwo(t *testing.T, o fakegpu.Options) ([2]*Device, *fakegpu.Machine) {
	t.Helper()
	o.GPUs = 2
	m, p := fakeBackend(t, o)
	var all [2]*Device
	for i := range all {
		p.index, p.api = i, m.API()
		d, err := open(p)
		if err != nil {
			t.Fatal(err)
		}
		all[i] = d
	}
	t.Cleanup(func() {
		for _, d := range all {
			if err := d.Close(); err != nil {
				t.Errorf("closing: %v", err)
			}
		}
		if m.LossCause() != nil {
			t.Errorf("a GPU was lost: %v", m.LossCause())
		}
		m.CheckLeaks(t)
	})
	return all, m
}

// A copy from GPU to GPU is in order with the operations on both vectors before and after.
func TestFetch(t *testing.T) {
	for _, noPeers := range []bool{false, true} {
		d, m := openTwo(t, fakegpu.Options{NoPeers: noPeers})
		for _, n := range []int{0, 1, 1000, executor.ChunkBytes/4 + 77} {
			src, dst := d[0].NewVector(n), d[1].NewVector(n)
			want, got := make([]float32, n), make([]float32, n)
			for round := range 3 {
				for i := range want {
					want[i] = float32(i%1000 + round)
				}
				d[0].Write(src, want)
				d[0].Do(device.Combine(src, device.Term{A: 2, V: src}))
				if !d[1].Fetch(dst, src) {
					t.Fatal("no copy")
				}
				d[0].Do(device.Combine(src)) // zeros, after the copy
				d[1].Do(device.Combine(dst, device.Term{A: 0.5, V: dst}))
				if d[1].Read(got, dst); !slices.Equal(got, want) {
					t.Errorf("noPeers=%t: %d numbers did not arrive as they were sent", noPeers, n)
				}
			}
		}
		if direct := m.Count("MemcpyPeer"); (direct == 0) != noPeers {
			t.Errorf("noPeers=%t: %d copies from GPU to GPU", noPeers, direct)
		}
	}
}

// runOn runs a small training with the agents spread over devices, and returns its rows and models.
func runOn(t *testing.T, algo string, devices ...*Device) string {
	t.Helper()
	set := smallDigits(t, 80, 20)
	c := train.Default()
	c.DataTrain, c.DataTest, c.Hidden, c.Algo, c.Metrics = 80, 20, train.Widths{5}, algo, "test"
	c.Agents, c.Graph, c.Partition, c.Batch, c.Iterations, c.EvalPoints, c.Threads = 4, "ring", "sorted", 4, 10, 1, 1
	net, err := model.MLP(model.MLPOptions{Inputs: set.Features(), Classes: set.Classes, Hidden: c.Hidden})
	if err != nil {
		t.Fatal(err)
	}
	var places []train.Replica
	for _, d := range devices {
		places = append(places, train.Replica{Device: d, Model: model.NewEngine(net, d)})
	}
	s, err := c.Resolve(set, places[0].Model)
	if err != nil {
		t.Fatal(err)
	}
	r, err := train.Run(t.Context(), s, train.Options{Device: places[0].Device, Model: places[0].Model,
		Others: places[1:]})
	if err != nil {
		t.Fatal(err)
	}
	for i := range r.Rows {
		r.Rows[i].WallS = 0
	}
	text, err := json.Marshal(r.Rows)
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + fmt.Sprint(r.Models)
}

// Agents on two GPUs have the bits of a run on one, with and without peer access.
func TestAgentsOnTwoGPUs(t *testing.T) {
	for _, algo := range []string{"fspda-sa", "dsgd"} {
		one, _ := openFake(t, fakegpu.Options{}, false)
		want := runOn(t, algo, one)
		for _, noPeers := range []bool{false, true} {
			d, m := openTwo(t, fakegpu.Options{NoPeers: noPeers})
			if runOn(t, algo, d[:]...) != want {
				t.Errorf("%s, noPeers=%t: another run than on one GPU", algo, noPeers)
			}
			if m.Count("MemcpyPeer") == 0 && !noPeers {
				t.Errorf("%s: nothing was copied from GPU to GPU", algo)
			}
		}
	}
}
