package megakernel

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"unsafe"

	"fspda/cuda/executor"
	"fspda/cuda/kernels"
)

// ProfileVariable is an environment variable. If it is not empty, it names a file. At the end a
// device appends to it where the time of the megakernel's launches went.
const ProfileVariable = "FSPDA_CUDA_PHASES"

// profile is the times of a sample of the launches. Only one launch at a time is measured.
type profile struct {
	path    string
	name    string // of the GPU
	kHz     int
	blocks  int // thread blocks of a launch
	device  executor.Block
	host    *executor.Buffer
	phases  [][]string // the kernels of the launch that is measured, by phase; nil: none is
	all     []*phaseTimes
	samples int
	cycles  float64 // of all sampled launches
	waits   float64 // cycles from the start of a launch to its first phase
	slowest float64 // the lowest rates of a clock, in units of the average
	fastest float64 // the highest
}

// phaseTimes is the sums of the times of phases with the same kernels, in cycles.
type phaseTimes struct {
	kernels []string // each once, in order
	calls   []int
	longest []float64 // of the warp that was busy longest with the calls of a kernel
	count   int
	whole   float64 // from the start of the phase to the start of the next, on average of the warps
	busiest float64 // The time until the last warp ends.
	least   float64 // of the warp that was busy shortest
	last    float64 // The time until the last warp starts.
}

const warps = kernels.MegakernelThreads / 32

// sampled is how many launches there are for each that is measured. It is odd, so that launches
// which alternate are all measured at some time.
const sampled = 15

// StartProfile has launches measured from now on. name is the GPU's, and kHz its clock rate.
func (m *Megakernel) StartProfile(path, name string, kHz int) (err error) {
	p := &profile{path: path, name: name, kHz: kHz, blocks: m.blocks}
	if p.device, err = m.ex.Alloc(executor.ChunkBytes); err != nil {
		return err
	}
	if p.host, err = m.ex.AllocBuffer(executor.ChunkBytes); err != nil {
		return err
	}
	m.profile = p
	return nil
}

// timesOf returns where a launch of the list notes times: 0 unless it is measured.
func (m *Megakernel) timesOf() kernels.Address {
	p := m.profile
	if p == nil || p.phases != nil || m.Launches%sampled != 0 || p.bytes(m.Commands.Points()) > executor.ChunkBytes {
		return 0
	}
	return p.device.Address()
}

func (p *profile) bytes(points int) int { return 4 * points * p.blocks * warps }

// launchMeasured launches a call of the list that notes times, and takes the times once they are
// there.
func (m *Megakernel) launchMeasured(c kernels.Call) error {
	p, bytes := m.profile, m.profile.bytes(m.Commands.Points())
	if err := m.ex.SetBytes(p.device.At, 0, bytes); err != nil {
		return err
	}
	if err := m.ex.Launch(c); err != nil {
		return err
	}
	if err := m.ex.CopyFromDevice(p.host.Pointer(), p.device.At, bytes); err != nil {
		return err
	}
	for _, calls := range m.Commands.Calls() {
		names := []string{}
		for _, c := range calls {
			names = append(names, c.Kernel.Name)
		}
		p.phases = append(p.phases, names)
	}
	m.ex.AfterSent(func() {
		if m.ex.Err() == nil {
			p.add(unsafe.Slice((*uint32)(p.host.Pointer()), bytes/4))
		}
		p.phases = nil
	})
	return nil
}

// launchTimes is the times that a launch noted, on one clock. The clocks of multiprocessors begin
// at different times and may have different rates. The blocks leave a barrier at about the same
// time, so that a line through these times tells both.
type launchTimes struct {
	times  []uint32
	blocks int
	clocks []clock // One clock for each block.
}

// clock is the average of a clock's times at the barriers, the same of all clocks, and its rate.
type clock struct{ own, all, rate float64 }

// alignedTimes aligns the clocks of a launch with a number of phases.
func alignedTimes(times []uint32, blocks, phases int) launchTimes {
	t := launchTimes{times, blocks, make([]clock, blocks)}
	begins := make([][]float64, blocks) // When a phase begins, by the clock of the block.
	averages, average := make([]float64, phases), 0.0
	for b := range blocks {
		t.clocks[b].rate, begins[b] = 1, make([]float64, phases)
		for i := range phases {
			begins[b][i] = t.at(1+2*i, b*warps)
			averages[i] += begins[b][i] / float64(blocks)
		}
	}
	for _, a := range averages {
		average += a / float64(phases)
	}
	for b := range blocks {
		own, product, square := 0.0, 0.0, 0.0
		for i, a := range averages {
			own += begins[b][i] / float64(phases)
			product += (a - average) * begins[b][i]
			square += (a - average) * (a - average)
		}
		t.clocks[b] = clock{own, average, 1}
		if phases > minPhases {
			t.clocks[b].rate = product / square
		}
	}
	return t
}

// minPhases is how many phases a launch has at most for which rates of clocks are not computed.
const minPhases = 3

// at returns the time of a warp at a point. A clock wraps.
func (t launchTimes) at(point, warp int) float64 {
	block := warp / warps
	begin := t.times[t.blocks*warps+block*warps] // When the first phase begins.
	c := t.clocks[block]
	return (float64(int32(t.times[point*t.blocks*warps+warp]-begin))-c.own)/c.rate + c.all
}

// rates returns the lowest and the highest rate of a clock.
func (t launchTimes) rates() (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, c := range t.clocks {
		low, high = min(low, c.rate), max(high, c.rate)
	}
	return low, high
}

// begin returns the average of the blocks' times at a point at which all have met. Only the first
// warp looks for the other blocks: a warp that waits for it reads its clock before.
func (t launchTimes) begin(point int) (sum float64) {
	for b := range t.blocks {
		sum += t.at(point, b*warps)
	}
	return sum / float64(t.blocks)
}

func (p *profile) add(times []uint32) {
	on := alignedTimes(times, p.blocks, len(p.phases))
	low, high := on.rates()
	p.slowest, p.fastest = p.slowest+low, p.fastest+high
	p.samples++
	p.waits += on.at(1, 0) - on.at(0, 0)
	call, start := 1+2*len(p.phases), on.begin(1)
	for i, names := range p.phases {
		begin, end, next := 1+2*i, 2+2*i, start
		t := p.of(names)
		busiest, least, last := 0.0, math.Inf(1), 0.0
		longest, sums := make([]float64, len(t.kernels)), make([]float64, len(t.kernels))
		for w := range p.blocks * warps {
			clear(sums)
			for k, name := range names { // the times of calls without work are equal
				sums[slices.Index(t.kernels, name)] += on.at(call+2*k+1, w) - on.at(call+2*k, w)
			}
			for k, s := range sums {
				longest[k] = max(longest[k], s)
			}
			first := on.at(begin, w/warps*warps)
			busiest, last = max(busiest, on.at(end, w)-start), max(last, first-start)
			least = min(least, on.at(end, w)-first)
		}
		whole := busiest // no barrier follows the last phase
		if i < len(p.phases)-1 {
			next = on.begin(begin + 2)
			whole = max(whole, next-start)
		}
		for k, s := range longest {
			t.longest[k] += s
		}
		for _, name := range names {
			t.calls[slices.Index(t.kernels, name)]++
		}
		t.count++
		t.busiest, t.least, t.whole, t.last = t.busiest+busiest, t.least+least, t.whole+whole, t.last+last
		p.cycles += whole
		call, start = call+2*len(names), next
	}
}

func (p *profile) of(names []string) *phaseTimes {
	each := slices.Clone(names)
	slices.Sort(each)
	each = slices.Compact(each)
	for _, t := range p.all {
		if slices.Equal(t.kernels, each) {
			return t
		}
	}
	t := &phaseTimes{kernels: each, calls: make([]int, len(each)), longest: make([]float64, len(each))}
	p.all = append(p.all, t)
	return t
}

// write writes a table of the phases, in the order in which they were first seen.
func (p *profile) write(to io.Writer) error {
	per := float64(max(1, p.samples))
	us := func(cycles float64, n int) float64 { return cycles / float64(max(1, n)) / float64(max(1, p.kHz)) * 1e3 }
	var s strings.Builder
	fmt.Fprintf(&s, "phases of the megakernel on %s: one launch in %d, %d launches, on average %.1f µs with %.1f µs "+
		"for the list, in cycles at %d MHz; clocks run at %.3f to %.3f of the average\n", p.name, sampled, p.samples,
		us(p.cycles+p.waits, p.samples), us(p.waits, p.samples), p.kHz/1000, p.slowest/per, p.fastest/per)
	fmt.Fprintf(&s, "%8s %8s %8s %8s %8s %8s  %s\n", "a launch", "µs", "busiest", "barrier", "least", "last",
		"kernels: calls, and µs of the warp that was busy longest with them")
	for _, t := range p.all {
		fmt.Fprintf(&s, "%8.2f %8.2f %8.2f %8.2f %8.2f %8.2f ", float64(t.count)/per, us(t.whole, t.count),
			us(t.busiest, t.count), us(t.whole-t.busiest, t.count), us(t.least, t.count), us(t.last, t.count))
		for k, name := range t.kernels {
			fmt.Fprintf(&s, " %s %.1f× %.2f", name, float64(t.calls[k])/float64(t.count), us(t.longest[k], t.count))
		}
		s.WriteByte('\n')
	}
	_, err := io.WriteString(to, s.String())
	return err
}

// WriteProfile appends what was measured to the file of StartProfile, if there was one.
func (m *Megakernel) WriteProfile() error {
	if m == nil || m.profile == nil {
		return nil
	}
	f, err := os.OpenFile(m.profile.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("cuda: writing the phases that %s asks for: %w", ProfileVariable, err)
	}
	return errors.Join(m.profile.write(f), f.Close())
}
