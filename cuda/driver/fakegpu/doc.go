// Package fakegpu is a machine with GPUs in host memory, behind the functions of
// fspda/cuda/driver, for tests without a GPU.
//
// It does what the driver does: memory is allocated and moved, streams keep their order, events are
// recorded and waited for, captured work is launched again. What it cannot do, run kernels, it
// hands to a function of the test ([Machine.Kernels]).
//
// It is meaner than a GPU. Work on a stream waits in its queue until somebody waits for it, so that
// host memory which is used again too early, and an event that nobody waits for, show. Every
// address is looked up among the allocations, and every handle among those that live. A call from a
// thread without a context fails. All calls are written down ([Machine.Calls]), what is not given
// back is told ([Machine.Leaks]), and calls can be made to fail ([Machine.Fail], [Machine.Lose]).
package fakegpu
