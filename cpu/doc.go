// Package cpu is the device.Device of the host: vectors are slices of float32, and work is done on
// the calling goroutine.
//
// [New] gives the device. Its vectors are [*Vector], whose Data anyone on the host may look at; the
// operations on them are in combine.go, sparse.go and reduce.go. [Device.Load] binds a network to
// the host as a [*Program]: the code is checked once, its buffers are made once, and a run then
// calls one kernel after the other (kernel.go has the table) and allocates nothing. [Call] runs a
// single kernel on slices.
//
// The agents of a run are the parallelism, and each loads a Program of its own. Where there are
// more cores than agents, [Threads] gives every Program helpers for its large kernels (team.go),
// which take parts of the output. No result depends on the number of cores or threads, on where
// operands lie, or on the architecture, to the last bit: vector operations, element-wise kernels
// and the exponential round each product by itself, and the matrix product rounds each product and
// sum together.
//
// The matrix product (gemm.go has its definition) is assembly on amd64, in one version for AVX-512
// and one for AVX2 and FMA; the command in internal/gemmgen writes it. Elsewhere, on older
// processors and with the build tag noasm it is Go, with the same bits and a hundred times slower.
// GODEBUG=cpu.avx512f=off or cpu.avx2=off takes a version away.
//
// Examples may come as bytes (device.Batch). Where only dense layers read them, their products turn
// them into numbers while they pack a factor (coded.go, gemm_coded_amd64.go), and no copy as
// numbers exists; else a Program turns the whole batch into numbers first.
//
// The loops over vectors (combinations, sums, element-wise kernels, the exponential and what stands
// on it, vec.go) are assembly in the same way, written by internal/vecgen; each has a twin in Go
// whose name ends in Go, which is its definition and gives the same bits.
//
// Vectors and arenas lie in large pages where they are long, and vectors of ten thousand numbers
// and more are cut from slabs of such pages (slab.go): the agents of a run otherwise have more
// pages than the processor remembers, and their vectors cost a third more time. Beyond the caches a
// core waits for a limited number of lines, so kernels ask the second cache, which waits for most,
// for some forty lines ahead of their turn over all their vectors, and not more.
//
// A convolution (conv.go has its definition) needs no im2col: with channels last, what one row of a
// filter sees of an image is one run of numbers, so the micro-kernels of the matrix product read
// their factor straight from a padded copy of the image, run after run, while the sums stay in
// registers. Over all convolutions of ResNet-50 at batch 8 and 224 pixels, all three directions,
// this reached 86 % of what the multiply-adds of one core (AVX-512, Zen 5) can do on a machine
// whose other core was busy; 3×3 filters 80 to 94 %, the first layer with its three channels 87 to
// 90 %, and least, 74 %, the data gradient of 1×1 filters with a stride, which mostly writes zeros.
// An image blocked by 16 channels would save the copies, which take 1 to 6 % of the time, and cost
// every other kernel its simple layout. The kernels work in room that a Program has and
// [Program.Workspace] tells.
//
// Batch normalisation (norm.go, norm_grad.go) and pooling (pool.go) have their definitions in these
// files and are assembly under the same conditions; the command in internal/normgen writes it.
// Passes over several matrices go through memory in its order, or back, and keep what belongs to
// columns in the first cache; over all batch norms of ResNet-50 that is 87 % of the speed of a
// copy, where going down columns was 68.
//
// A caller's duty is to keep to lengths: what does not fit panics with a message that begins "cpu:"
// and names the operation. A batch that does not fit, a label that is no class, and code that makes
// no sense are errors.
//
// fspda/device has the meaning of all of it; fspda/device/devicetest the contract that this package
// passes.
package cpu
