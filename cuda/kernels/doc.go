// Package kernels holds the GPU's own kernels: their sources in CUDA C++ (src/*.cu, embedded), a
// table of their parameters, and for each a function that makes a [Call], its arguments and its
// launch geometry, from sizes and addresses. It launches nothing itself.
//
// A unit is a source file, compiled to one cubin for an architecture ([Sources], [Compile]). A
// kernel's function in the cubin has the kernel's name. Its parameters are passed in the order of
// the table, one 64-bit slot each, of which it reads the lower bytes: what cuLaunchKernel wants is
// an array with the addresses of the slots. Addresses are those of the device. Sizes are int32, and
// int64 ("l") where they may exceed 2³¹.
//
// In float32 results have the bits of fspda/cpu, but for batch normalisation with the statistics of
// its batch, a smoothed loss (not its gradient), and products on tensor cores: products and sums
// are rounded one by one (units are compiled with --fmad=false), and sums whose order matters are
// added in the order of the CPU's, matrix products ([Gemm]) too. Masks have the bits of fspda/dist.
// Nothing depends on the number of multiprocessors, so a run repeats on any GPU.
//
// A [Fleet] is the small-network regime: all agents of a GPU compute their gradients in as many
// launches as one of them would need.
//
// Kernels whose work may also be done in another way than by a launch of their own have it in a
// body: a function of a .cuh file that is told of its block (src/block.cuh says what it has to keep
// to). The kernel in the .cu file then only calls the body with the block that runs:
//
//	KERNEL(256) gather(float *dst, ...) { gather_of(Launched(), dst, ...); }
//
// A [March] is that other way: many calls, phase after phase, in one cooperative launch, whose
// blocks take the places of theirs. What can march is in steps (march.go), which src/march.cu is
// compiled with.
//
// The package hostrun below runs the same sources on the host, without a GPU; tests compare them
// with the CPU engine. [Call] is what both take.
//
// Where to look next: kernel.go for the table; vector.go and src/vector.cu for the operations of
// device.Device, mask.go for masks, norm.go for batch normalisation, cast.go for 16 bits and the
// loss scale, listed.go for small work in lists, fleet.go for agents that compute together,
// march.go for many calls in one launch.
package kernels
