// Package measure measures the cost of training. Each workload is a struct of options, a function
// that runs it, and a report that prints itself; the command binds flags to the options. Every
// measurement is compared with a limit that is measured in the same run, because machines and load
// differ: compare ratios, not absolute numbers.
//
// [Step] measures an iteration of training against the matrix products of this machine. [Kernels]
// measures each kernel against multiply-adds or a copy of as many bytes. [Network] measures a
// gradient of any network, kernel by kernel. [Load] measures the data loader against a copy of as
// many numbers. [Exchange] measures exchanges between processes against bare streams. [Agents]
// measures memory and time of a step of many agents. [Overhead] measures how much concurrent
// exchanges slow a gradient down. The scripts in bench/peers measure the same work in NumPy,
// PyTorch, JAX and torchvision.
//
// On a GPU ([Card]) work is timed by the clock of the device: [CardNetwork], [CardStep], and
// Kernels with a Card.
package measure
