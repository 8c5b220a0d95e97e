package train

import (
	"slices"
	"sync/atomic"
	"testing"

	"fspda/cpu"
	"fspda/data"
	"fspda/device"
	"fspda/train/config"
	"fspda/train/memory"
)

// gpuLike is a device with a memory of its own, which is never full.
type gpuLike struct{ *privateDevice }

func (d gpuLike) Features() device.Features { return device.Features{Memory: d} }

func (gpuLike) Memory() (free, total uint64, err error) { return 1 << 40, 1 << 40, nil }
func (gpuLike) Opened() uint64                          { return 0 }
func (gpuLike) Taken() (uint64, error)                  { return 1 << 20, nil }
func (gpuLike) Block(n int) uint64                      { return 4 * uint64(n) }
func (gpuLike) ProgramBytes(most uint64, programs, batch int) uint64 {
	return most + uint64(4*programs*batch)
}
func (gpuLike) BranchBytes(int) uint64                                        { return 0 }
func (gpuLike) ProductBytes(largest uint64, _, _ int) uint64                  { return largest }
func (gpuLike) Staging(int, int, int) uint64                                  { return 0 }
func (gpuLike) Overhead(string, int) (bytes uint64, measured bool, err error) { return 0, false, nil }
func (gpuLike) KeepOverhead(string, int) error                                { return nil }

// scored counts the batches that a model is scored on.
type scored struct {
	privateModel
	n *atomic.Int64
}

func (m scored) Score(x device.Vector, b device.Batch) (loss, hits, hits5 float64, err error) {
	m.n.Add(1)
	return m.privateModel.Score(x, b)
}

// Evaluations over three devices are, to the last bit, those on one, and every device has its share
// of them: also where there are fewer models than devices.
func TestEvaluationOverDevices(t *testing.T) {
	set, err := data.Synthetic(data.SyntheticOptions{Train: 400, Test: 8*config.ChunkExamples + 7, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, looked := range []int{0, 1} {
		c := small()
		c.Iterations, c.EvalPoints, c.EvalAgents = 4, 2, looked
		m := labModel(t, c)
		runOn := func(n int) (string, []int64) {
			s, err := c.Resolve(set, m)
			if err != nil {
				t.Fatal(err)
			}
			// two workers for each device, who share a model where there are too few
			s.Programs.Gradient = memory.LargeProgram
			replicas, counts := []Replica{}, make([]atomic.Int64, n)
			for i := range n {
				d := &privateDevice{cpu.New()}
				replicas = append(replicas, Replica{gpuLike{d}, scored{privateModel{m, d}, &counts[i]}})
			}
			r, err := Run(t.Context(), s,
				Options{Device: replicas[0].Device, Model: replicas[0].Model, Others: replicas[1:]})
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Memory) != n || r.Memory[0].Taken != 1<<20 || r.Memory[0].Need == 0 {
				t.Errorf("memory of %d devices: %+v", n, r.Memory)
			}
			shares := make([]int64, n)
			for i := range shares {
				shares[i] = counts[i].Load()
			}
			return trace(t, r), shares
		}
		want, all := runOn(1)
		got, shares := runOn(3)
		if got != want {
			t.Errorf("%d agents looked at: another run than on one device", looked)
		}
		if total := shares[0] + shares[1] + shares[2]; slices.Min(shares) == 0 || total != all[0] {
			t.Errorf("%d agents looked at: the devices scored %d batches, one alone %d", looked, shares, all)
		}
	}
}
