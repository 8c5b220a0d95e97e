package kernels

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
)

var _ = define("megakernel.cu", "megakernel device_list:p list:p words:u command_words:u count:p times:p")

// MegakernelThreads is the number of threads per block of the megakernel: MEGAKERNEL_THREADS of
// megakernel.cu.
const MegakernelThreads = 256

const (
	maxCommandWords = 5120  // MAX_COMMAND_WORDS of megakernel.cu
	sharedSlice     = 12672 // SHARED_SLICE of megakernel.cu
)

// MegakernelShared is the shared memory of a block of the megakernel, in bytes. GPUs of compute
// capability 7.5 have less.
const MegakernelShared = 8*maxCommandWords + MegakernelThreads/64*sharedSlice

// megakernelCommand is a kernel that the megakernel can run: its threads per block, and its body.
type megakernelCommand struct {
	kernel  string
	threads uint32
	body    string // %s stands for the block type
}

// megakernelCommands lists them. megakernel.cu refers to them by index. An iteration of figure 1
// needs the first ones, whose code so lies together.
var megakernelCommands = []megakernelCommand{
	{"head", 256, "head_of<%s>"},
	{"gemm_nt_bytes_mma", 128, "gemm_nt_bytes_mma_of<%s>"},
	{"gemm_tn_bytes_mma", 128, "gemm_tn_bytes_mma_of<%s>"},
	{"gemm_tn_narrow", 64, "gemm_tn_narrow_of<%s>"},
	{"bias_gradient", 64, "bias_gradient_of<%s>"},
	{"add_decay", 64, "add_decay_of<%s>"},
	{"square_blocks", 256, "square_blocks_of<%s>"},
	{"combine3", 256, "combine3_of<%s>"},
	{"collect", 256, "collect_of<%s>"},
	{"gather", 128, "gather_of<%s>"},
	{"add_diff", 256, "add_diff_of<%s>"},
	{"copy_words", 256, "copy_words_of<%s>"},
	{"fill", 256, "fill_of<%s>"},
	{"combine1", 256, "combine1_of<%s>"},
	{"combine2", 256, "combine2_of<%s>"},
	{"combine4", 256, "combine4_of<%s>"},
	{"combine5", 256, "combine5_of<%s>"},
	{"combine6", 256, "combine6_of<%s>"},
	{"scatter_add", 256, "scatter_add_of<%s>"},
	{"move_copy", 256, "move_copy_of<%s>"},
	{"add_diffs", 256, "add_diffs_of<%s>"},
	{"adamw", 256, "adamw_of<%s>"},
	{"dot_blocks", 128, "dot_blocks_of<%s>"},
	{"dot_sum", 256, "dot_sum_of<%s>"},
	{"add_scaled", 256, "add_scaled_of<%s>"},
	{"softmax_cross_entropy", 128, "softmax_cross_entropy_of<%s>"},
	{"gemm_nt_32", 64, "gemm_of<SmallNT, %s>"},
	{"gemm_nn_32", 64, "gemm_of<SmallNN, %s>"},
	{"gemm_tn_32", 64, "gemm_of<SmallTN, %s>"},
	{"gemm_nt_bytes", 64, "gemm_nt_bytes_of<SmallNT, %s>"},
	{"gemm_tn_bytes", 64, "gemm_tn_bytes_of<SmallTN, %s>"},
	{"gemm_nt_tf32", 128, "gemm_of<TensorCoreNT, %s>"},
	{"gemm_nn_tf32", 128, "gemm_of<TensorCoreNN, %s>"},
	{"gemm_tn_tf32", 128, "gemm_of<TensorCoreTN, %s>"},
	{"gemm_nt_bytes_tf32", 128, "gemm_nt_bytes_of<TensorCoreNT, %s>"},
	{"gemm_tn_bytes_tf32", 128, "gemm_tn_bytes_of<TensorCoreTN, %s>"},
	{"gemm_tn_bytes_wide", 128, "gemm_tn_bytes_wide_of<%s>"},
	{"gemm_nt_bytes_parts", 256, "gemm_nt_bytes_parts_of<%s>"},
}

// Stores the numbers of the commands once all kernels are in the table.
func init() {
	table["megakernel"].MaxShared = MegakernelShared
	for i, s := range megakernelCommands {
		k := table[s.kernel]
		if k == nil {
			panic("kernels: there is no kernel " + s.kernel + " for the megakernel")
		}
		k.command = i + 1
	}
}

// commandsHeader returns the generated header of megakernel.cu.
func commandsHeader() string {
	var s strings.Builder
	s.WriteString("#define MEGAKERNEL_COMMANDS")
	for i, x := range megakernelCommands {
		fmt.Fprintf(&s, " \\\n  COMMAND(%d, "+x.body+")", i, fmt.Sprintf("VirtualBlock<%d>", x.threads))
	}
	return s.String() + "\n"
}

// maxBlocks is the most blocks of a call in a CommandList: see over of megakernel.cu.
const maxBlocks = 1 << 21

// Listable reports whether a call can be added to a CommandList.
func (c Call) Listable() bool {
	n := c.Kernel.command
	blocks := uint64(c.Grid[0]) * uint64(c.Grid[1]) * uint64(c.Grid[2])
	return n > 0 && c.Shared == 0 && c.Block == [3]uint32{megakernelCommands[n-1].threads, 1, 1} && blocks < maxBlocks
}

// CommandList is a list of kernel calls that the megakernel runs in one launch, phase by phase; the
// calls of a phase run at the same time. Data that arguments point to can be sent with the list. A
// CommandList is written to host memory that the GPU reads, and can be reused.
type CommandList struct {
	deviceList Address // address of the copy on the GPU
	buffer     []byte
	data       int // bytes of data at the start of the buffer
	phases     [][]listedCall
	count      int
	args       int
}

// listedCall is a call with the address of its data.
type listedCall struct {
	Call
	data Address
}

// DataBase is a placeholder for the address of a call's data before it is known: see AddWithData.
// Addresses in the next 2³² bytes refer to data. No real address or other argument has these bits.
const DataBase Address = 0x7ff1 << 48

// arg returns an argument with the data's address filled in.
func (c *listedCall) arg(i int) uint64 {
	if v := c.Args[i]; v-uint64(DataBase) >= 1<<32 {
		return v
	}
	return c.Args[i] - uint64(DataBase) + uint64(c.data)
}

// Reset empties the list. It will be written to buffer and copied to the same number of bytes at
// deviceList. Both must be aligned to 16 bytes.
func (m *CommandList) Reset(deviceList Address, buffer []byte) {
	m.deviceList, m.buffer = deviceList, buffer
	m.data, m.count, m.args = 0, 0, 0
	for i := range m.phases {
		clear(m.phases[i])
		m.phases[i] = m.phases[i][:0]
	}
	m.phases = m.phases[:0]
}

func (m *CommandList) Len() int { return m.count }

func (m *CommandList) HasData() bool { return m.data != 0 }

func (m *CommandList) Phases() int { return len(m.phases) }

func (m *CommandList) Calls() [][]Call {
	all := make([][]Call, len(m.phases))
	for i, calls := range m.phases {
		for k := range calls {
			c := calls[k].Call
			c.Args = make([]uint64, len(c.Args))
			for j := range c.Args {
				c.Args[j] = calls[k].arg(j)
			}
			all[i] = append(all[i], c)
		}
	}
	return all
}

// align16 rounds a number of bytes up to the unit that is copied.
func align16(bytes int) int { return (bytes + 15) &^ 15 }

func (m *CommandList) commandBytes(phases, calls, args int) int {
	return align16(8*(1+(phases+1)/2) + commandSize*calls + 8*args)
}

// commandSize is the size of a Command of megakernel.cu.
const commandSize = 32

// Fits reports whether the buffer, and the shared memory for commands, can hold more commands with
// a number of arguments, in phases before limit, and more bytes of data.
func (m *CommandList) Fits(limit, calls, args, data int) bool {
	commands := m.commandBytes(max(limit, len(m.phases)), m.count+calls, m.args+args)
	return commands <= 8*maxCommandWords && m.data+align16(data)+commands <= len(m.buffer)
}

// Data reserves bytes of data and returns the host memory to write and its address on the GPU.
// There must be space: see Fits.
func (m *CommandList) Data(bytes int) ([]byte, Address) {
	at := m.data
	m.data += align16(bytes)
	return m.buffer[at : at+bytes], m.deviceList + Address(at)
}

// Add adds a call to a phase, counted from 0. There must be space: see Fits. It panics if the call
// is not Listable. The arguments must not change afterwards.
func (m *CommandList) Add(phase int, c Call) { m.AddWithData(phase, c, 0) }

// AddWithData is Add for a call whose arguments contain addresses from DataBase on. They are
// replaced by addresses from data on.
func (m *CommandList) AddWithData(phase int, c Call, data Address) {
	if !c.Listable() {
		panic(fmt.Sprintf("kernels: %s with blocks %v is not a command of the megakernel", c.Kernel.Name, c.Block))
	}
	if c.Empty() {
		return
	}
	for len(m.phases) <= phase {
		if n := len(m.phases); cap(m.phases) > n {
			m.phases = m.phases[:n+1] // reuses the memory of an earlier list
		} else {
			m.phases = append(m.phases, nil)
		}
	}
	m.phases[phase] = append(m.phases[phase], listedCall{c, data})
	m.count++
	m.args += len(c.Args)
}

// Call writes the list and returns the launch of the megakernel with a number of blocks. list is
// the GPU's address of the buffer. count is a uint32 of device memory, 0 before its first use.
// times is device memory for a uint32 of each warp at each of Points, the clock of its
// multiprocessor, or 0.
func (m *CommandList) Call(list, count, times Address, blocks int) Call {
	size := m.commandBytes(len(m.phases), m.count, m.args)
	m.write(m.buffer[m.data:m.data+size], blocks)
	l := Launch{Grid: [3]uint32{uint32(blocks), 1, 1}, Block: [3]uint32{MegakernelThreads, 1, 1},
		Shared: MegakernelShared, Cooperative: true}
	return call("megakernel", l, m.deviceList, list, (m.data+size)/8, size/8, count, times)
}

// Points returns the number of points of the launch at which the time is noted: its start, then the
// start and the end of each phase, then of each call. Warps that have no part in a call do not note
// it.
func (m *CommandList) Points() int { return 1 + 2*len(m.phases) + 2*m.count }

// Bytes returns the part of the buffer that the GPU copies, once Call has written it.
func (m *CommandList) Bytes() []byte {
	return m.buffer[:m.data+m.commandBytes(len(m.phases), m.count, m.args)]
}

// Places is where the blocks of a phase's calls go in a megakernel: place p is group p/blocks of
// the threads of megakernel block p%blocks, of width slots of 64 threads.
type Places struct {
	blocks, skip, next, width int
	last                      *Kernel // The kernel of the call before.
}

// crowded is more blocks than a place takes while a longer call runs beside it.
const crowded = 8

// NewPlaces returns the places of a phase in a megakernel of `blocks` blocks.
func NewPlaces(blocks int) Places { return Places{blocks: blocks} }

// Take returns the place of the first block of the next call. Its other blocks take those that
// follow, from the last place on to place skip. Blocks as large as those before go on where these
// ended. Smaller blocks begin a group that is free in all megakernel blocks, and skip those before,
// if there is one. Another kernel, with fewer than crowded blocks for each free place, has free
// places only.
func (p *Places) Take(c *Call) (first, skip int) {
	const slots = MegakernelThreads / 64
	width, n := int(c.Block[0])/64, int(c.Grid[0]*c.Grid[1]*c.Grid[2])
	all := slots / width * p.blocks
	if width != p.width && p.width > 0 {
		used := (p.next + p.blocks - 1) / p.blocks * p.width // slots
		group := (used + width - 1) / width
		p.skip, p.next = 0, group*p.blocks+p.next%p.blocks
		if group*width < slots {
			p.skip = group * p.blocks
		}
	}
	if free := all - p.next; width == p.width && c.Kernel != p.last && free > 0 && n > free && n < crowded*free {
		p.skip = p.next
	}
	first = p.skip + (p.next-p.skip)%(all-p.skip)
	p.width, p.next, p.last = width, p.next+n, c.Kernel
	return first, p.skip
}

func (m *CommandList) write(b []byte, megakernelBlocks int) {
	order := binary.LittleEndian
	order.PutUint64(b, uint64(len(m.phases)))
	end, at := 0, 8*(1+(len(m.phases)+1)/2)
	for i, calls := range m.phases {
		end += len(calls)
		order.PutUint32(b[8+4*i:], uint32(end))
	}
	args := at + commandSize*m.count
	for _, calls := range m.phases {
		// The longest first: others then find threads beside them.
		slices.SortStableFunc(calls, func(a, b listedCall) int { return a.Kernel.command - b.Kernel.command })
		free := NewPlaces(megakernelBlocks)
		for k := range calls {
			c := &calls[k]
			blocks := c.Grid[0] * c.Grid[1] * c.Grid[2]
			first, skip := free.Take(&c.Call)
			what := uint32(c.Kernel.command-1) | uint32(bits.TrailingZeros32(c.Block[0]))<<8 | uint32(skip)<<16
			per := func(n uint32) uint32 { return math.Float32bits(1 / float32(n)) }
			for i, v := range [...]uint32{what, blocks, uint32(first), c.Grid[0], c.Grid[1],
				per(c.Grid[0]), per(c.Grid[1]), uint32(args / 8)} {
				order.PutUint32(b[at+4*i:], v)
			}
			for i := range c.Args {
				order.PutUint64(b[args+8*i:], c.arg(i))
			}
			at, args = at+commandSize, args+8*len(c.Args)
		}
	}
}
