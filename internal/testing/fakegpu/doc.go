// Package fakegpu implements fspda/cuda/driver's table of driver functions with GPUs in host
// memory, for tests without a GPU.
//
// It allocates and copies memory, runs streams in order, records and waits for events, and captures
// and launches graphs, as the driver does. Kernels are run by a function of the test
// ([Machine.SetKernels]).
//
// It is stricter than a GPU. Work on a stream stays queued until something waits for it, so that
// host memory reused too early and a missing wait become visible. Every address is looked up among
// the allocations and every handle among the live ones. A call from a thread without a current
// context fails. A Machine records all calls ([Machine.Calls]), lists objects that were not freed
// ([Machine.Leaks]), and fails calls on request ([Machine.Fail], [Machine.Lose]).
//
// Package fspda/internal/testing/fakecuda fakes the same driver and NVIDIA's other libraries one
// level lower, as shared libraries.
package fakegpu
