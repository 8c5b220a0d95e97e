// Package cuda is the device.Device of an NVIDIA GPU.
//
// [Open] opens a GPU; [Find] lists the GPUs and libraries of a machine. NVIDIA's libraries
// are opened at run time (fspda/cuda/dynlib), so that the same program runs with and without them.
// With the build tags nocuda or static, and outside of Linux, no GPU is found.
//
// One goroutine owns the GPU's context: see package executor. Operations on vectors return when
// they are queued. Queued operations without dependencies on each other are launched together,
// level by level, and operations of several agents share launches. Small networks compute the
// gradients of several agents in the same launches (group.go), from a copy of the data set on the
// GPU (dataset.go), and where possible in one cooperative launch together with the operations on
// vectors (group_megakernel.go). Other programs have memory for two batches: the next one is copied
// while the GPU computes (batch.go). No agent waits for another because of that, and results are
// bit-identical however agents are grouped. Several GPUs copy vectors to each other without the
// host (peer.go).
//
// A GPU can fail at any time, and most operations return no error. So the first failure is kept:
// [Device.Err] and every later Load and Run return it, operations do nothing, and Read returns NaN.
//
// Networks are computed in one of four precisions ([WithPrecision]). Package compiler turns code
// into tasks: it inserts casts in fp16 and bf16, tracks the loss scale of fp16, fuses calls and
// allocates the arena. The lower*.go files make kernels and library calls of the tasks. The loss
// scale of fp16 lives on the device (lossscale.go): a gradient that is not finite becomes zero,
// halves the scale and is counted, and its agent exchanges all the same.
//
// Convolutions use the fastest implementation of cuDNN, which may give other bits in another run,
// unless the device is [Deterministic].
//
// The package is in three: executor and compiler share nothing, and each is of use without the
// other; programs and batch groups stay here, since both prepare batches, loss scales and data sets
// with the same code.
//
// Where to look next: device.go and vector.go for vectors, executor/opqueue.go for the order of
// operations, program.go and lower.go for networks, report.go for the report on a machine.
package cuda
