package algo

import "fspda/train/setting"

// Keys that several methods share.
var (
	Gamma = setting.Key{Name: "gamma", Topic: "method", Default: 0.5, Want: "a finite number",
		Help: "fspda, gasloc: gossip gain; 0.5 averages a pair; fspda-sa-ef: less if it is not set and the " +
			"compressor needs it"}
	Beta = setting.Key{Name: "beta", Topic: "method", Default: 1, Range: "[0, inf)", Want: "0 or more",
		Help: "fspda: dual step size"}
	Theta = setting.Key{Name: "theta", Topic: "method", Default: setting.AutoFloat{Auto: true},
		Want: "a finite number, or auto",
		Help: "dsgd, choco, beer, ticopd, docom: consensus step size; auto is 0.5 for dsgd, or 1/(1 + the largest " +
			"degree) where all edges at once would not bear that, and half the stable limit for the others"}
	LocalSteps = setting.Key{Name: "local_steps", Topic: "method", Whole: true, Range: "[0, inf)", Want: "at least 0",
		Help: "scaffnew, led, kgt: local steps between two averagings; 0 follows edges, or is 10 with edges auto; " +
			"local-sgd, des-loc, diloco, muloco, sparseloco, noloco, gasloc: steps of a round; 0 is 10; qg-dsgdm: " +
			"the same; 0 is 1; sparta, sparta-diloco, streaming-diloco: iterations from one average to the next; 0 " +
			"is 1; blocking swarm: steps of a pair; 0 is 1"}
)

// Keys that compressors declare and methods read.
var (
	compress = setting.Key{Name: "compress"}
	norms    = setting.Key{Name: "norms"}
)
