// Package cuda is the device.Device of an NVIDIA GPU.
//
// [Open] opens a GPU and [Find] tells what a machine has for it. NVIDIA's libraries are opened at run time (fspda/cuda/dynlib), so that the
// program is the same with and without them; with the build tags nocuda or static, and outside of Linux, no GPU is ever found.
//
// One goroutine, locked to its thread, owns the GPU's context; work reaches it over a channel, in the order in which it is sent, and it hands
// the work to one stream of the GPU (owner.go). So nothing on the device needs a lock, memory may be used again as soon as it is
// given back (pool.go), and what waits for the GPU is the caller and not the owner. Operations on vectors return when they are
// sent, not when they are done.
//
// A GPU can fail at any time, and most operations return no error. So the first failure stays: [Device.Err] and every later Load and Run return it,
// operations do nothing, and what is read is not a number.
//
// Where to look next: device.go and vector.go for the vectors, program.go for networks, report.go for what is said of a machine.
package cuda
