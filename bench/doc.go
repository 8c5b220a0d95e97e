// Package bench measures what training costs. Each workload is a struct of options, a function that runs it and a report that prints
// itself; cmd/fspda binds flags to them. A measurement is always compared with a limit taken in the same run, because machines and
// hours differ: read the ratios.
//
// [Step] is an iteration of training against this machine's matrix product. [Kernels] is each kernel against multiply-adds or a copy of as
// many bytes. The scripts in peers measure the same work in NumPy, PyTorch and JAX.
package bench
