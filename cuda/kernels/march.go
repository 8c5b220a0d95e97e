package kernels

import (
	"encoding/binary"
	"fmt"
	"strings"
)

var _ = define("march.cu", "march room:p list:p words:u control:u count:p")

// MarchThreads is how many threads a block of a march has: MARCH_THREADS of march.cu.
const MarchThreads = 256

const (
	marchControl = 1536 // CONTROL of march.cu
	marchSlice   = 4608 // SLICE of march.cu
	marchShared  = 8*marchControl + MarchThreads/64*marchSlice
)

// step is a kernel that can be a step of a march: how many threads its blocks have, and its body
// for a block.
type step struct {
	kernel  string
	threads uint32
	body    string // with %s for the block
}

// steps are all of them. Their places are what march.cu calls them by.
var steps = []step{
	{"copy_words", 256, "copy_words_of<%s>"},
	{"fill", 256, "fill_of<%s>"},
	{"combine1", 256, "combine1_of<%s>"},
	{"combine2", 256, "combine2_of<%s>"},
	{"combine3", 256, "combine3_of<%s>"},
	{"combine4", 256, "combine4_of<%s>"},
	{"combine5", 256, "combine5_of<%s>"},
	{"combine6", 256, "combine6_of<%s>"},
	{"gather", 256, "gather_of<%s>"},
	{"scatter_add", 256, "scatter_add_of<%s>"},
	{"add_diff", 256, "add_diff_of<%s>"},
	{"add_diffs", 256, "add_diffs_of<%s>"},
	{"dot_blocks", 128, "dot_blocks_of<%s>"},
	{"dot_sum", 256, "dot_sum_of<%s>"},
	{"square_blocks", 128, "square_blocks_of<%s>"},
	{"add_decay", 64, "add_decay_of<%s>"},
	{"add_scaled", 256, "add_scaled_of<%s>"},
	{"collect", 256, "collect_of<%s>"},
	{"softmax_cross_entropy", 128, "softmax_cross_entropy_of<%s>"},
	{"gemm_nt_32", 64, "gemm_of<SmallNT, %s>"},
	{"gemm_nn_32", 64, "gemm_of<SmallNN, %s>"},
	{"gemm_tn_32", 64, "gemm_of<SmallTN, %s>"},
	{"gemm_nt_bytes", 64, "gemm_nt_bytes_of<SmallNT, %s>"},
	{"gemm_tn_bytes", 64, "gemm_tn_bytes_of<SmallTN, %s>"},
	{"gemm_nt_tf32", 128, "gemm_of<FastNT, %s>"},
	{"gemm_nn_tf32", 128, "gemm_of<FastNN, %s>"},
	{"gemm_tn_tf32", 128, "gemm_of<FastTN, %s>"},
	{"gemm_nt_bytes_tf32", 128, "gemm_nt_bytes_of<FastNT, %s>"},
	{"gemm_tn_bytes_tf32", 128, "gemm_tn_bytes_of<FastTN, %s>"},
}

// Kernels learn their places when all are in the table.
func init() {
	for i, s := range steps {
		k := table[s.kernel]
		if k == nil {
			panic("kernels: there is no kernel " + s.kernel + " to march")
		}
		k.step = i + 1
	}
}

// stepsHeader is steps for march.cu.
func stepsHeader() string {
	var s strings.Builder
	s.WriteString("#define MARCH_STEPS")
	for i, x := range steps {
		fmt.Fprintf(&s, " \\\n  STEP(%d, "+x.body+")", i, fmt.Sprintf("Marching<%d>", x.threads))
	}
	return s.String() + "\n"
}

// Marches tells whether a call can be a step of a march.
func (c Call) Marches() bool {
	n := c.Kernel.step
	return n > 0 && c.Shared == 0 && c.Block == [3]uint32{steps[n-1].threads, 1, 1}
}

// March is calls that go to a GPU in one launch: phase after phase, and those of a phase at the
// same time. What arguments point to may travel with them. A March is written to memory of the host
// that the GPU reads, and can be used again.
type March struct {
	room   Address // where the GPU will have it
	buffer []byte
	data   int // bytes of the buffer that arguments point to
	phases [][]marching
	steps  int
	args   int
}

// marching is a call with its data at some place.
type marching struct {
	Call
	data Address
}

// Nowhere is an address of data whose place is not known yet: see AddWith. Up to 2³² bytes behind
// it there is no memory, and no argument has such bits.
const Nowhere Address = 0x7ff1 << 48

// arg is an argument as the GPU is to see it.
func (c *marching) arg(i int) uint64 {
	if v := c.Args[i]; v-uint64(Nowhere) >= 1<<32 {
		return v
	}
	return c.Args[i] - uint64(Nowhere) + uint64(c.data)
}

// Begin empties a march, which is to be written to buffer and will be copied to room, where as many
// bytes are. Both begin at a multiple of 16 bytes.
func (m *March) Begin(room Address, buffer []byte) {
	m.room, m.buffer = room, buffer
	m.data, m.steps, m.args = 0, 0, 0
	for i := range m.phases {
		clear(m.phases[i])
		m.phases[i] = m.phases[i][:0]
	}
	m.phases = m.phases[:0]
}

// Steps is how many there are.
func (m *March) Steps() int { return m.steps }

// Bare tells whether nothing travels with the steps.
func (m *March) Bare() bool { return m.data == 0 }

// Phases is how many there are.
func (m *March) Phases() int { return len(m.phases) }

// All are the calls of all phases, one after the other: what the march does, as launches.
func (m *March) All() []Call {
	var all []Call
	for _, calls := range m.phases {
		for k := range calls {
			c := calls[k].Call
			c.Args = make([]uint64, len(c.Args))
			for i := range c.Args {
				c.Args[i] = calls[k].arg(i)
			}
			all = append(all, c)
		}
	}
	return all
}

// even rounds a number of bytes up to what is copied at a time.
func even(bytes int) int { return (bytes + 15) &^ 15 }

// control is how many bytes phases, steps and arguments take.
func (m *March) control(phases, steps, args int) int {
	return even(8*(1+(phases+1)/2) + stepBytes*steps + 8*args)
}

// stepBytes is the size of a Step of march.cu.
const stepBytes = 24

// Fits tells whether there is room for so many more steps, with so many arguments, in phases before
// limit, and for so many bytes of data.
func (m *March) Fits(limit, steps, args, data int) bool {
	return m.data+even(data)+m.control(max(limit, len(m.phases)), m.steps+steps, m.args+args) <= len(m.buffer)
}

// Data is where bytes of data are to be written, and where the GPU will have them. There must be
// room: see Fits.
func (m *March) Data(bytes int) ([]byte, Address) {
	at := m.data
	m.data += even(bytes)
	return m.buffer[at : at+bytes], m.room + Address(at)
}

// Add puts a call in a phase, from 0 on. There must be room: see Fits. It panics if the call does
// not march. The arguments must stay as they are.
func (m *March) Add(phase int, c Call) { m.AddWith(phase, c, 0) }

// AddWith is Add of a call that was made with addresses from Nowhere on: they stand for data and
// what lies behind it.
func (m *March) AddWith(phase int, c Call, data Address) {
	if !c.Marches() {
		panic(fmt.Sprintf("kernels: %s with blocks %v is no step of a march", c.Kernel.Name, c.Block))
	}
	if c.Empty() {
		return
	}
	for len(m.phases) <= phase {
		if n := len(m.phases); cap(m.phases) > n {
			m.phases = m.phases[:n+1] // with the room of an earlier march
		} else {
			m.phases = append(m.phases, nil)
		}
	}
	m.phases[phase] = append(m.phases[phase], marching{c, data})
	m.steps++
	m.args += len(c.Args)
}

// Call writes the march, and returns its launch on so many blocks, for which list is where the GPU
// reads the buffer. count is a uint32 of the device's memory, 0 before its first march.
func (m *March) Call(list, count Address, blocks int) Call {
	size := m.control(len(m.phases), m.steps, m.args)
	m.write(m.buffer[m.data : m.data+size])
	l := Launch{Grid: [3]uint32{uint32(blocks), 1, 1}, Block: [3]uint32{MarchThreads, 1, 1}, Shared: marchShared,
		Together: true}
	return call("march", l, m.room, list, (m.data+size)/8, size/8, count)
}

// Bytes is what the GPU copies, once Call has written it.
func (m *March) Bytes() []byte { return m.buffer[:m.data+m.control(len(m.phases), m.steps, m.args)] }

// write writes phases, steps and arguments.
func (m *March) write(b []byte) {
	order := binary.LittleEndian
	order.PutUint64(b, uint64(len(m.phases)))
	end, at := 0, 8*(1+(len(m.phases)+1)/2)
	for i, calls := range m.phases {
		end += len(calls)
		order.PutUint32(b[8+4*i:], uint32(end))
	}
	args := at + stepBytes*m.steps
	for _, calls := range m.phases {
		first := uint32(0)
		for k := range calls {
			c := &calls[k]
			blocks := c.Grid[0] * c.Grid[1] * c.Grid[2]
			for i, v := range [...]uint32{uint32(c.Kernel.step - 1), blocks, first, c.Grid[0], c.Grid[1],
				uint32(args / 8)} {
				order.PutUint32(b[at+4*i:], v)
			}
			for i := range c.Args {
				order.PutUint64(b[args+8*i:], c.arg(i))
			}
			at, args, first = at+stepBytes, args+8*len(c.Args), first+blocks
		}
	}
}
