// Command fspda trains one model on many agents that hold different data and exchange parameters
// over one random edge of a graph at a time.
//
//	fspda train            train from flags or a YAML file; no flag trains on built-in digits
//	fspda up -n N          the same with one process per agent, on this machine
//	fspda agent            one agent; the others run elsewhere
//	fspda certs            make the certificates of agents for mutual TLS
//	fspda experiment FILE  run what a file describes: figures, searches, comparisons, lists of them
//	fspda figure N         train and plot a figure of the paper; figure list shows all
//	fspda sweep            search over settings, on a grid or at random
//	fspda compare          compare runs: tables, and their curves in one plot
//	fspda plot             plot curves as SVG, PNG or PDF
//	fspda runs             list and delete run folders
//	fspda export           write the weights of a run for other programs
//	fspda web              show runs in a browser, live
//	fspda docs             the manual, offline
//	fspda data info        describe the data in a folder, an archive or shards of images
//	fspda data prepare     pack images into memory-mapped files; data check verifies them
//	fspda data mnist       download and verify a data set; also cifar10 and imagenet
//	fspda bench step       measure an iteration against the matrix product of this machine
//	fspda bench network    measure a gradient of a network: images per second, memory, kernels
//	fspda bench kernels    measure each kernel against multiply-adds or a copy
//	fspda devices          list GPUs, their libraries, and missing libraries
//	fspda selftest         check that a device computes correct results
//
// Exit status: 0 success; 1 failure; 2 invalid input, where nothing was started or what was started
// can be resumed; 3 the run diverged; 4 a disk is full, and what was started can be resumed; 130
// interrupted by Ctrl-C, SIGTERM or SIGHUP after writing a checkpoint.
package main
