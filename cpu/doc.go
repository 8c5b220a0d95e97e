// Package cpu is the device.Device of the host: vectors are slices of float32, and kernels run on
// the calling goroutine.
//
// [New] returns the device. Its vectors are [*Vector], whose Data may be read and written directly.
// [Device.Load] binds the code of a network to the device as a [*Program]: it checks the code once
// and allocates its buffers once, and each run then calls one kernel after the other and allocates
// nothing. [Call] runs a single kernel on slices.
//
// The device stands on small packages, one per topic:
//
//   - cpu/kernel: the arguments of kernels ([fspda/cpu/kernel.Args]), tables of kernels, worker
//     teams, aligned memory;
//   - cpu/isa: the instruction set in use;
//   - cpu/vec: vectors and rows: operations of Device on vectors, element-wise kernels, reductions,
//     softmax and losses, sparse access;
//   - cpu/tile: micro-kernels of matrix products, and the packing of their operands;
//   - cpu/gemm: matrix products, and the fully connected layers, which are products with an
//     epilogue;
//   - cpu/conv: convolution and its gradients;
//   - cpu/norm: batch normalization and pooling.
//
// To add a kernel, name it in package device, describe its operands in device/signature, write its
// function in the package of its topic, and add it to that package's table Kernels. The generators
// in tools/asm write the assembly.
//
// Parallelism comes from the agents of a run: each loads a Program of its own. With more cores than
// agents, [Threads] gives every Program a team of workers, which compute parts of the outputs of
// large kernels.
//
// Results are bit-identical for every number of cores and threads, every alignment of operands,
// every instruction set and every architecture: vector operations, element-wise kernels and the
// exponential round each product separately, and the matrix product rounds each product and sum
// together, as a fused multiply-add does.
//
// Kernels are assembly on amd64, in one version for AVX-512 and one for AVX2 with FMA, and on arm64
// for NEON. Elsewhere, and with the build tag noasm, they are Go with the same bits; a matrix
// product is then a hundred times slower.
//
// The examples of a batch may be bytes (device.Batch). If only fully connected layers read them,
// the products decode them while they pack their operand, and no float32 copy exists; else a
// Program decodes the whole batch first.
//
// Long vectors and arenas lie in huge pages, and vectors of 4096 numbers or more are cut from slabs
// of such pages (slab.go). Otherwise the agents of a run use more pages than the TLB holds, and
// operations on their vectors take a third more time.
//
// With the option [BF16] the factors of products and of most convolutions are rounded to bfloat16.
// So are activations between convolutions. Their sums have another definition, and the same bits on
// all processors with the same [BF16Sums].
//
// A caller must pass operands of the right lengths: a mismatch panics with a message that begins
// with "cpu:" and names the operation. A batch of the wrong size, a label that is not a class, and
// invalid code are errors.
//
// Package device defines the operations; device/devicetest holds the contract that this package
// passes.
package cpu
