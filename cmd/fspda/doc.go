// Command fspda trains one model on many agents that hold different data and never meet all at
// once.
//
//	fspda train            train, from flags or a YAML file; no flag runs the main job on built-in data
//	fspda up -n N         the same with a process for each agent, on this machine
//	fspda agent           one agent; the others run elsewhere
//	fspda certs           certificates by which machines know each other
//	fspda figure N         run all algorithms of a figure of the paper, and draw it; figure list tells of them
//	fspda sweep            search over settings, on a grid or at random
//	fspda compare          runs side by side: tables, and their curves in the same pictures
//	fspda plot             curves as SVG, PNG or PDF
//	fspda runs             list runs, and prune them
//	fspda web              runs in a browser, live
//	fspda docs             the manual, offline
//	fspda data info        what a folder, an archive or shards of pictures hold
//	fspda data prepare     pack pictures into files that training maps into memory; data check verifies them
//	fspda data mnist       fetch a data set, verified; also cifar10, and imagenet, which needs an account
//	fspda bench step       what an iteration costs, against this machine's matrix product
//	fspda bench network    what a gradient of a network costs: images a second, memory, kernels
//	fspda bench kernels    what each kernel reaches, against multiply-adds or a copy
//	fspda devices          GPUs, their libraries, and what is missing of them
//	fspda selftest         whether a device computes what it should
//
// Exit status: 0 done; 1 something failed; 2 bad input, and nothing was begun or what was begun can
// be resumed; 3 the run diverged; 130 stopped by Ctrl-C or SIGTERM after leaving a checkpoint.
package main
