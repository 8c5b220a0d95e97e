// Package hostrun runs the kernels of fspda/cuda/kernels on the host, from the same source that is
// compiled for GPUs. It needs a C++ compiler and is used by tests: of the kernels, and of the code
// that launches them.
//
// [Open] compiles all units, with host.h included first, to a shared library, caches it by the
// content of the sources, and opens it. [Library.Launch] runs a call in the memory of the program.
// The threads of a block are fibres that switch at barriers and warp operations. These work as on a
// GPU, and a barrier that not all threads reach is an error.
//
// Between two barriers, threads run in a random order, and so do blocks ([OrderVariable]): a kernel
// that lacks a barrier, or relies on the order of blocks, gives different results in different
// orders. In cooperative launches, warps that barriers do not hold together get far ahead of each
// other. Shared memory holds NaN when a block begins. With [CheckedVariable] the compiler's
// sanitizers find misaligned accesses. Races that no order of whole intervals between barriers
// shows are not found.
package hostrun
