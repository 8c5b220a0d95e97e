// Package bench measures the cost of training and runs the experiments of the paper. Each workload
// is a struct of options, a function that runs it, and a report that prints itself; the command
// binds flags to the options. Every measurement is compared with a limit that is measured in the
// same run, because machines and load differ: compare ratios, not absolute numbers.
//
// [Step] measures an iteration of training against the matrix products of this machine. [Kernels]
// measures each kernel against multiply-adds or a copy of as many bytes. [Network] measures a
// gradient of any network, kernel by kernel. [Load] measures the data loader against a copy of as
// many numbers. [MeasureOverhead] measures how much concurrent exchanges slow a gradient down. The
// scripts in peers measure the same work in NumPy, PyTorch, JAX and torchvision.
//
// On a GPU ([Card]) work is timed by the clock of the device: [CardNetwork], [CardStep], and
// Kernels with a Card.
//
// A [Figure] is read from one of figures/*.yaml and describes the runs of a figure of the paper.
// [Figure.Jobs] returns their configurations for a variant and a [Scale]; a [Sweep] returns those
// of a hyperparameter search. A [Campaign] runs such a list of jobs, each in its own folder. It can
// be interrupted and run again: finished runs are kept and unfinished ones resumed. A [Table]
// summarizes the outcomes. Plots are made by package web from the run folders. [Calibration]
// forecasts the time of jobs on this machine.
package bench
