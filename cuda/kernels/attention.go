package kernels

import (
	"fmt"
	"math"
	"slices"
)

var _ = defineEach("attention.cu", allElements,
	"attention_%s y:p lse:p qkv:p t:i tiles:i heads:i h:i high:f low:f",
	"attention_grad_q_%s dqkv:p stats:p qkv:p y:p dy:p t:i tiles:i heads:i h:i high:f low:f",
	"attention_grad_kv_%s dqkv:p stats:p qkv:p dy:p t:i tiles:i heads:i h:i high:f low:f",
)

var _ = define("attention.cu",
	"rope_table table:p at:p t:i pairs:i theta:d",
	"rope y:p x:p table:p m:l t:i heads:i pairs:i sign:f",
	"attention_cache moved:p cache:p qkv:p at:p m:i places:i heads:i h:i high:f low:f",
	"attention_step y:p scores:p qkv:p cache:p at:p m:i places:i heads:i h:i",
)

var _ = defineEach("attention_mma.cu", halfElements, mmaKernels()...)

// mmaWidths are the widths of heads for which there are kernels on tensor cores. A narrower head
// uses the next larger width.
var mmaWidths = []int{32, 64, 128}

func mmaKernels() (all []string) {
	const sizes = "t:i tiles:i heads:i h:i scale:f"
	for _, w := range mmaWidths {
		all = append(all, fmt.Sprintf("attention_mma_%d_%%s y:p lse:p qkv:p "+sizes, w),
			fmt.Sprintf("attention_mma_grad_q_%d_%%s dqkv:p stats:p qkv:p y:p lse:p dy:p "+sizes, w),
			fmt.Sprintf("attention_mma_grad_kv_%d_%%s dqkv:p stats:p qkv:p dy:p "+sizes, w))
	}
	return all
}

func init() {
	for _, e := range halfElements {
		for _, width := range mmaWidths {
			p := mmaPlan{width}
			table[e.name(fmt.Sprintf("attention_mma_%d", width))].MaxShared = p.shared()
			table[e.name(fmt.Sprintf("attention_mma_grad_q_%d", width))].MaxShared = p.sharedGradQ()
			table[e.name(fmt.Sprintf("attention_mma_grad_kv_%d", width))].MaxShared = p.sharedGradKV()
		}
	}
}

// attentionTile is the number of queries, of keys, and of columns of a head that a block of
// attention.cu works on.
const attentionTile = 64

// Attention is device.Attention and its gradient: Windows of T tokens, Heads of Width numbers. QKV,
// Y and their gradients are of an Element, LSE is float32.
type Attention struct {
	Windows, T, Heads, Width int
	Element                  Element
	// TensorCores selects kernels that multiply on tensor cores, of compute capability 8.0. They
	// need FitsTensorCores, and addresses aligned to 16 bytes. Others compute in float32.
	TensorCores bool

	QKV, Y, LSE Address
	DY, DQKV    Address
	Scratch     Address // memory of ScratchBytes bytes, needed by Grad
}

// FitsTensorCores reports whether there are kernels on tensor cores for the element and the width.
func (a *Attention) FitsTensorCores() bool {
	return a.Element != F32 && a.Width%8 == 0 && a.Width <= mmaWidths[len(mmaWidths)-1]
}

// ScratchBytes returns the size of Scratch: three numbers for each row of each head.
func (a *Attention) ScratchBytes() int { return 12 * a.Windows * a.T * a.Heads }

func (a *Attention) tiles() int { return (a.T + attentionTile - 1) / attentionTile }

func (a *Attention) launch() Launch {
	return Launch{Grid: [3]uint32{uint32(a.Windows * a.Heads * a.tiles()),
		uint32((a.Width + attentionTile - 1) / attentionTile), 1}, Block: [3]uint32{threads, 1, 1}}
}

// keyScale returns 1/√width as a sum of two numbers.
func keyScale(width int) (high, low float32) {
	scale := 1 / math.Sqrt(float64(width))
	high = float32(scale)
	return high, float32(scale - float64(high))
}

// Forward computes Y and LSE.
func (a *Attention) Forward() Call {
	high, low := keyScale(a.Width)
	if a.TensorCores {
		p := a.mma()
		tiles, l := a.mmaLaunch(p.rows(), p.shared())
		return call(a.mmaName("attention_mma"), l, a.Y, a.LSE, a.QKV, a.T, tiles, a.Heads, a.Width, high)
	}
	return call(a.Element.name("attention"), a.launch(), a.Y, a.LSE, a.QKV, a.T, a.tiles(), a.Heads, a.Width, high, low)
}

// Grad computes DQKV. Kernels on tensor cores read the LSE of Forward, others compute it again.
func (a *Attention) Grad() []Call {
	high, low := keyScale(a.Width)
	if a.TensorCores {
		p := a.mma()
		tiles, q := a.mmaLaunch(p.rowsGrad(), p.sharedGradQ())
		_, kv := a.mmaLaunch(p.rowsGrad(), p.sharedGradKV())
		return []Call{
			call(a.mmaName("attention_mma_grad_q"), q, a.DQKV, a.Scratch, a.QKV, a.Y, a.LSE, a.DY, a.T, tiles, a.Heads,
				a.Width, high),
			call(a.mmaName("attention_mma_grad_kv"), kv, a.DQKV, a.Scratch, a.QKV, a.DY, a.T, tiles, a.Heads,
				a.Width, high),
		}
	}
	return []Call{
		call(a.Element.name("attention_grad_q"), a.launch(), a.DQKV, a.Scratch, a.QKV, a.Y, a.DY, a.T, a.tiles(),
			a.Heads, a.Width, high, low),
		call(a.Element.name("attention_grad_kv"), a.launch(), a.DQKV, a.Scratch, a.QKV, a.DY, a.T, a.tiles(), a.Heads,
			a.Width, high, low),
	}
}

const mmaThreads = 128 // AM_THREADS of attention_mma.cu

// mmaPlan is MmaPlan of attention_mma.cu: sizes of a block for heads of at most width numbers.
type mmaPlan struct{ width int }

// tile returns the rows that pass through a block at a time.
func (p mmaPlan) tile() int {
	if p.width > 64 {
		return 32
	}
	return 64
}

// rows and rowsGrad return the rows of the outputs of a block.
func (p mmaPlan) rows() int { return mmaThreads }

func (p mmaPlan) rowsGrad() int {
	if p.width > 64 {
		return mmaThreads / 2
	}
	return mmaThreads
}

// shared, sharedGradQ and sharedGradKV return bytes of shared memory.
func (p mmaPlan) shared() int       { return 2 * p.width * (p.rows() + 2*2*p.tile()) }
func (p mmaPlan) sharedGradQ() int  { return 2 * p.width * (2*p.rowsGrad() + 2*2*p.tile()) }
func (p mmaPlan) sharedGradKV() int { return p.sharedGradQ() + 4*2*2*p.tile() }

func (a *Attention) mma() mmaPlan {
	if !a.FitsTensorCores() {
		panic(fmt.Sprintf("kernels: attention on tensor cores with heads of %d numbers of %v", a.Width, a.Element))
	}
	at, _ := slices.BinarySearch(mmaWidths, a.Width)
	return mmaPlan{mmaWidths[at]}
}

func (a *Attention) mmaName(kernel string) string {
	return a.Element.name(fmt.Sprintf("%s_%d", kernel, a.mma().width))
}

func (a *Attention) mmaLaunch(rows, shared int) (tiles int, l Launch) {
	tiles = (a.T + rows - 1) / rows
	return tiles, Launch{Grid: [3]uint32{uint32(a.Windows * a.Heads * tiles), 1, 1}, Block: [3]uint32{mmaThreads, 1, 1},
		Shared: uint32(shared)}
}
