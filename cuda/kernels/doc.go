// Package kernels holds this program's own GPU kernels: their sources in CUDA C++ (src, embedded),
// a table of their parameters, and functions that build a [Call] (kernel, arguments and launch
// geometry) from sizes and addresses. It launches nothing itself.
//
// A unit is a .cu file, compiled to one cubin per architecture ([Sources], [Compile]). A kernel's
// function in the cubin has the kernel's name. Parameters are passed in the order of the table in
// 64-bit slots, of which the kernel reads the lower bytes; cuLaunchKernel takes the addresses of
// the slots. Addresses are device addresses. Sizes are int32, or int64 ("l") if they may exceed
// 2³¹.
//
// In float32, results have the bits of fspda/cpu, with three exceptions: batch normalisation with
// the statistics of its batch, a smoothed loss (not its gradient), and products on tensor cores.
// Products and sums are rounded one by one (units are compiled with --fmad=false), and sums whose
// order matters use the CPU's order, including matrix products ([Gemm]). Masks have the bits of
// fspda/dist. No result depends on the number of multiprocessors, so runs are reproducible on any
// GPU.
//
// A [Group] computes the gradients of all agents of a GPU that train the same small network, in as
// many launches as one agent would need.
//
// A kernel that can also run inside the megakernel has a body: a function in a .cuh file that takes
// its block as an argument (src/block.cuh has the rules). The kernel in the .cu file only calls it:
//
//	KERNEL(256) gather(float *dst, ...) { gather_of(GridBlock(), dst, ...); }
//
// A [CommandList] runs many calls, phase by phase, in one cooperative launch of the megakernel. The
// kernels that it supports are listed in commandlist.go, from which a header of src/megakernel.cu
// is generated.
//
// Package hostrun below runs the same sources on the host, without a GPU; tests compare them with
// the CPU engine. Package kerneltest holds checks that run on both.
//
// Where to look next: kernel.go for the table; vector.go and src/vector.cu for the operations of
// device.Device; mask.go for masks; norm.go for batch normalisation; cast.go for 16 bits and the
// loss scale; multitensor.go for lists of tensors; group.go for agents that compute together;
// commandlist.go for many calls in one launch.
package kernels
