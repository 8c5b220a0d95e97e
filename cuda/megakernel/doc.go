// Package megakernel runs the kernels of several levels of operations in one cooperative launch.
//
// Small networks have many kernels that take microseconds each, so that their launches take longer
// than their work. A [Megakernel] collects calls in a list. One kernel executes the list: its
// thread blocks take the calls of a phase, and wait for each other at a barrier before the next
// phase (kernels.CommandList, megakernel.cu). Results are bit-identical to separate launches.
//
// It is a package of its own, behind executor.Collector, because a GPU or driver may not run
// cooperative launches, and the program must work without: the executor then has a Collector that
// collects nothing.
package megakernel
