package kernels_test

import (
	"encoding/binary"
	"fmt"
	"testing"
	"unsafe"

	"fspda/cuda/kernels"
	"fspda/internal/rng"
)

// hostList is a command list on the host.
type hostList struct {
	kernels.CommandList
	h                *host
	list, deviceList []uint64
	count            []uint32
	times            []uint32 // of the next launch; nil: not noted
}

func (h *host) newList(bytes int) *hostList {
	m := &hostList{h: h, list: make([]uint64, bytes/8), deviceList: make([]uint64, bytes/8), count: make([]uint32, 1)}
	m.begin()
	return m
}

func (m *hostList) begin() {
	m.Reset(at(m.h, m.deviceList), unsafe.Slice((*byte)(unsafe.Pointer(&m.list[0])), 8*len(m.list)))
}

// add appends phases.
func (m *hostList) add(phases ...[]kernels.Call) {
	first := m.Phases()
	for i, calls := range phases {
		for _, c := range calls {
			if !m.Fits(first+i+1, 1, len(c.Args), 0) {
				m.h.t.Fatalf("the list has no space for %s", c.Kernel.Name)
			}
			m.Add(first+i, c)
		}
	}
}

func (m *hostList) run(blocks int) {
	m.h.t.Helper()
	times := kernels.Address(0)
	if m.times != nil {
		times = at(m.h, m.times)
	}
	m.h.run(m.Call(at(m.h, m.list), at(m.h, m.count), times, blocks))
	if m.count[0]&^(1<<31) != 0 {
		m.h.t.Errorf("the block counter is %#x after a launch", m.count[0])
	}
}

// vectors holds the operands of a command list: long and short vectors.
type vectors struct {
	all, few []kernels.Address
	held     [][]float32
	dots     kernels.Address
}

const (
	vectorLength = 1301
	fewNumbers   = 300
)

func newVectors(h *host) *vectors {
	v := &vectors{}
	for i := range 6 {
		x, p := copied(h, numbers(uint64(i), vectorLength))
		y, q := copied(h, numbers(uint64(10+i), fewNumbers))
		v.all, v.few, v.held = append(v.all, p), append(v.few, q), append(v.held, x, y)
	}
	dots := make([]float32, 64)
	v.held, v.dots = append(v.held, dots), at(h, dots)
	return v
}

// phase returns calls that do not depend on each other: they read the last three vectors, in random
// order, and write the others.
func (v *vectors) phase(s rng.Stream, idx kernels.Address) []kernels.Call {
	a := func() float32 { return float32(s.IntN(9)-4) / 8 }
	order := []int32{0, 1, 2, 3, 4, 5}
	s.Permute(order)
	var x, y [6]kernels.Address
	for i, k := range order {
		x[i], y[i] = v.all[k], v.few[k]
	}
	terms := make([]kernels.Term, 1+s.IntN(kernels.MaxTerms))
	for i := range terms {
		terms[i] = kernels.Term{A: a(), V: x[3+s.IntN(3)]}
	}
	dot := kernels.Dot(0, v.dots+4*kernels.Address(s.IntN(16)), x[3], x[4], v.dots+128, vectorLength, 1)
	return []kernels.Call{
		kernels.Combine(x[0], vectorLength, terms...),
		kernels.ScatterAdd(x[1], kernels.Term{A: a(), V: y[3]}, idx, fewNumbers),
		kernels.AddDiffs(vectorLength, kernels.Term{A: a(), V: x[3]}, x[4], terms[1:], kernels.Term{A: a(), V: x[2]}),
		kernels.Gather(y[0], x[5], idx, fewNumbers),
		kernels.AddDiff(y[3], y[4], 0, fewNumbers, kernels.Term{A: a(), V: y[1]}),
		kernels.Copy(y[2]+4, y[5], fewNumbers-1-s.IntN(5)),
		dot[s.IntN(2)],
	}
}

// The megakernel computes the same as its calls one by one, on any number of blocks, repeatedly,
// for short and long lists.
func TestMegakernel(t *testing.T) {
	h := onHost(t)
	m := h.newList(64 << 10)
	got, want := newVectors(h), newVectors(h)
	index := make([]uint32, fewNumbers)
	for i := range index {
		index[i] = uint32(4*i + i%3)
	}
	for run, c := range []struct{ phases, blocks int }{{1, 1}, {5, 3}, {30, 2}, {4, 7}, {0, 2}} {
		m.begin()
		data, idx := m.Data(4 * fewNumbers)
		for i, v := range index {
			binary.LittleEndian.PutUint32(data[4*i:], v)
		}
		for i := range c.phases {
			key := []uint64{uint64(run), uint64(i)}
			m.add(got.phase(rng.New(1, "commands", key...), idx))
			h.run(want.phase(rng.New(1, "commands", key...), at(h, index))...)
		}
		m.run(c.blocks)
		for i := range got.held {
			sameBits(t, fmt.Sprintf("%d phases on %d blocks: vector %d", c.phases, c.blocks, i), got.held[i],
				want.held[i])
		}
	}
}

// A launch notes the time of each warp of each block at its start, at both ends of each phase, and of
// each call that has work for the warp, and nothing else.
func TestMegakernelTimes(t *testing.T) {
	const blocks, warps, phases = 3, kernels.MegakernelThreads / 32, 4
	h := onHost(t)
	m, v := h.newList(64<<10), newVectors(h)
	index := make([]uint32, fewNumbers)
	for i := range index {
		index[i] = uint32(i)
	}
	for i := range phases {
		m.add(v.phase(rng.New(1, "commands", uint64(i)), at(h, index)))
	}
	m.times = make([]uint32, m.Points()*blocks*warps+64)
	m.run(blocks)
	time := func(point, warp int) uint32 { return m.times[point*blocks*warps+warp] }
	seen := map[uint32]bool{}
	runs := 0
	for warp := range blocks * warps {
		last := uint32(0)
		follow := func(point int) {
			now := time(point, warp)
			if now <= last || seen[now] {
				t.Fatalf("point %d, warp %d: %d is not later than %d, or was noted twice", point, warp, now, last)
			}
			seen[now], last = true, now
		}
		follow(0)
		call := 0
		for i, calls := range m.Calls() {
			follow(1 + 2*i)
			for range calls {
				if at := 1 + 2*phases + 2*call; time(at, warp) != 0 {
					follow(at)
					follow(at + 1)
					runs++
				} else if time(at+1, warp) != 0 {
					t.Fatalf("call %d of warp %d ends and does not start", call, warp)
				}
				call++
			}
			follow(2 + 2*i)
		}
	}
	if most := blocks * warps * m.Len(); runs < blocks*m.Len() || runs > most*3/4 {
		t.Errorf("warps run %d calls, want some and not all of %d", runs, most)
	}
	for i, now := range m.times[m.Points()*blocks*warps:] {
		if now != 0 {
			t.Fatalf("number %d behind the last point is %d", i, now)
		}
	}
}

// Listable rejects kernels that are not commands and other block sizes, and Fits rejects calls that
// exceed the buffer.
func TestCommandListRejects(t *testing.T) {
	if kernels.Iota(256, 0, 5).Listable() || !kernels.Fill(256, 5, 0).Listable() {
		t.Error("iota is listable, or fill is not")
	}
	wide := kernels.Fill(256, 5, 0)
	wide.Block[0] = 512
	if wide.Listable() {
		t.Error("a call with blocks of 512 threads is listable")
	}
	var m kernels.CommandList
	m.Reset(256, make([]byte, 100))
	if !m.Fits(1, 1, 3, 16) || m.Fits(1, 1, 3, 48) || m.Fits(1, 2, 6, 16) || m.Fits(20, 1, 3, 16) {
		t.Error("100 bytes hold another list than they should")
	}
	defer func() {
		if recover() == nil {
			t.Error("iota was added")
		}
	}()
	m.Add(0, kernels.Iota(256, 0, 5))
}
