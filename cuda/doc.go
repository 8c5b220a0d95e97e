// Package cuda is the device.Device of an NVIDIA GPU.
//
// [Open] opens a GPU and [Find] tells what a machine has for it. NVIDIA's libraries are opened at
// run time (fspda/cuda/dynlib), so that the program is the same with and without them; with the
// build tags nocuda or static, and outside of Linux, no GPU is ever found.
//
// One goroutine owns the GPU's context, and is bound to a thread that has it while it works; work
// reaches it over a queue, in the order in which it is sent, and it hands the work to one stream of
// the GPU (owner.go). So nothing on the device needs a lock, memory may be used again as soon as it
// is given back (pool.go), and what waits for the GPU is the caller and not the owner. Operations
// on vectors return when they are asked for, not when they are done.
//
// What is asked for while the GPU is busy waits in a window (window.go) and goes to it in waves:
// what does not depend on each other in one, so that agents who do the same share launches. Small
// networks compute the gradients of all agents at hand in the launches of one (fleet.go), from a
// data set that lies on the GPU (store.go), and with them what else a window does on small vectors:
// all of it in one launch (march.go, fleet_march.go); others have room for two batches, of which
// one comes on a stream of its own while the GPU computes with the other (batch.go). No agent waits
// for another because of that, and no bit depends on the company. Several GPUs hand each other
// vectors without the host (peer.go).
//
// A GPU can fail at any time, and most operations return no error. So the first failure stays:
// [Device.Err] and every later Load and Run return it, operations do nothing, and what is read is
// not a number.
//
// Networks are computed in one of four precisions ([WithPrecision]). In fp32 and tf32 code is run
// as it is. In fp16 and bf16 it is planned anew (plan.go): activations, their gradients and the
// weights that products read have 16 bits, in an arena half as large (in fleets they are rounded
// and stay where they are, see fleet_short.go); the vectors, losses, statistics and the gradients
// of parameters have 32. fp16 multiplies the gradient of the loss by a scale that lives on the
// device (lossscale.go, device.LossScale): a gradient that is not finite becomes zero, halves the
// scale and is counted, and its agent exchanges all the same.
//
// In any precision what moves less memory or launches fewer kernels with the same bits is found in
// the code: gates of ReLUs and sums of gradients (gates.go), and what there is much of and fits in
// a list (lists.go).
//
// Convolutions are the fastest that cuDNN has, and may then give other bits in another run, unless
// the device is [Deterministic].
//
// Where to look next: device.go and vector.go for the vectors, window.go for the order of things,
// program.go and plan.go for networks, report.go for what is said of a machine.
package cuda
