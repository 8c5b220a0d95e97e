// Package hostrun runs the kernels of fspda/cuda/kernels on the host, from the very source that a
// GPU gets. It needs a C++ compiler and is there for tests: of the kernels, and of what launches
// them.
//
// [Open] builds all units with host.h before them to a shared library, once for each content of the
// sources, and opens it; [Library.Launch] runs a call in the memory of the program. The threads of
// a block are fibres that take turns at barriers and warp operations, so these work as on a GPU,
// and one that not all threads reach is an error.
//
// Threads run in a drawn order between two barriers, and so do blocks ([OrderVariable]): a kernel
// that lacks a barrier, or relies on the order of blocks, gives other bits in another order. Shared
// memory holds NaN when a block begins. With [CheckedVariable] the compiler's checks find addresses
// that are not aligned for what is read there. What is not found are races that no order of whole
// stretches between barriers shows.
package hostrun
