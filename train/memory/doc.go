// Package memory forecasts the memory of a run before it starts.
//
// [Check] refuses a setup that does not fit the host or a device, and suggests one that would.
// [Process] forecasts the bytes of this process, and [Footprint] the bytes of a process that is not
// started yet. [Devices] forecasts the bytes of each device with a memory of its own, by their use.
// The forecast counts vectors, batches, programs and messages as package train allocates them: a
// change of an allocation there needs the same change here.
//
// How many gradients and evaluations are computed at once decides how many programs a device holds,
// so concurrency.go decides it for the whole run.
package memory
