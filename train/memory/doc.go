// Package memory forecasts the memory of a run before it starts.
//
// [Check] refuses a setup that does not fit the host or a device, and says what would fit.
// [Process] forecasts the bytes of this process, [Footprint] those of a process that is not started
// yet, [Devices] those of each device with a memory of its own, by what they are for. The forecast
// counts vectors, batches, programs and messages as package train allocates them: a change of an
// allocation there needs the same change here.
//
// How many gradients and evaluations are computed at once decides how many programs a device holds,
// so concurrency.go decides it for the whole run.
package memory
