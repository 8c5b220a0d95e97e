// Package bench measures what training costs and plays the comparisons of the paper. Each workload
// is a struct of options, a function that runs it and a report that prints itself; cmd/fspda binds
// flags to them. A measurement is always compared with a limit taken in the same run, because
// machines and hours differ: read the ratios.
//
// [Step] is an iteration of training against this machine's matrix product. [Kernels] is each
// kernel against multiply-adds or a copy of as many bytes. [Network] is a gradient of any network,
// by kernels. [Load] is the pictures that the loader feeds, against a copy of as many numbers. The
// scripts in peers measure the same work in NumPy, PyTorch, JAX and torchvision.
//
// On a GPU ([Card]) work is timed by its own clock: [CardNetwork] and [CardStep], and Kernels with
// a Card.
//
// A [Figure] is one of figures/*.yaml: the runs of a figure of the paper. [Figure.Jobs] makes their
// configurations, in a flavour and at a [Scale]; a [Sweep] makes those of a search over settings. A
// [Campaign] plays such a list of jobs, each in a folder of its own, and can be stopped and played
// again: what is done is kept, what is unfinished goes on. A [Table] puts the outcomes into
// numbers. Pictures are made elsewhere, from the run folders. [Calibration] forecasts what jobs
// take on this machine.
package bench
