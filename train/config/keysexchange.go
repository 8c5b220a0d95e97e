package config

import (
	"fspda/dist"
	"fspda/train/setting"
)

// CompressionKeys belong to the algorithms that compress vectors, choco and swarm.
type CompressionKeys[N ~string] struct {
	Compress      N      `key:"compress"`
	Norms         string `key:"norms"`
	Early         bool   `key:"early"`
	Swarm         string `key:"swarm"`
	Initiator     string `key:"initiator"`
	ReferenceBits string `key:"reference_bits"`
}

var compressionKeys = []setting.Key{
	{Name: "compress", Topic: "exchange", Default: auto, Names: orAuto(forms("compress")), Forms: true, Check: notEmpty,
		Help: "choco, beer, ticopd, docom, fspda-sa-ef: VALUES; swarm: identity, CODES; demo: COEFFICIENTS, the 32 " +
			"largest cosine coefficients of each chunk of sides up to 64"},
	{Name: "norms", Topic: "exchange", Default: "tensor", Choices: []string{"tensor", "flat"},
		Needs: []setting.Need{needsNorms},
		Help:  "NORMS: one norm for each tensor, or one for the flat vector"},
	{Name: "early"},
	{Name: "swarm"},
	{Name: "initiator"},
	{Name: "reference_bits"},
}

// ExchangeKeys choose the agents, their graph and the coordinates that an exchange carries.
type ExchangeKeys[N ~string] struct {
	Agents       int     `key:"agents"`
	Graph        string  `key:"graph"`
	Edges        N       `key:"edges"`
	Mask         N       `key:"mask"`
	Density      float64 `key:"density"`
	Wire         string  `key:"wire"`
	ClipMessages float64 `key:"clip_messages"`
}

var exchangeKeys = []setting.Key{
	{Name: "agents", Topic: "exchange", Default: 10, Whole: true, Range: "[1, inf)", Want: "at least 1",
		Help: "number of agents n"},
	{Name: "graph", Topic: "exchange", Default: "complete", Names: forms("graph"), Forms: true,
		Needs: []setting.Need{needsExchange},
		Help:  "GRAPHS; those with a process of the same name, such as base(2), choose the edges, too"},
	{Name: "edges", Topic: "exchange", Default: auto, Names: orAuto(forms("edges")), Forms: true, Check: notEmpty,
		Needs: []setting.Need{needsExchange},
		Help: "edge process: auto, one-edge, k-edges(2), bernoulli(0.1), matching, periodic(10), coin(0.1), " +
			"one-peer-exp, push(1), full, ...; auto is that of the graph where it has one"},
	{Name: "mask", Topic: "exchange", Default: auto, Names: forms("mask"), Forms: true, Check: notEmpty,
		Needs: []setting.Need{needsRun(anExchange, func(s *Setup, _ Config) bool { return s.masked() })},
		Help:  "coordinates of an exchange: auto, randk, randk-per-layer, bernoulli, stratified, block, cycle, all"},
	{Name: "density", Topic: "exchange", Default: 0.1, Range: "(0, 1]",
		Want: "above 0 and at most 1: the share of coordinates that an exchange carries",
		Needs: []setting.Need{needsRun(anExchange+", and a mask other than all",
			func(s *Setup, c Config) bool { return s.masked() && (s.Config.Mask != "all" || c.Density == 1) })},
		Help: "share of the coordinates in an exchange, above 0 and at most 1"},
	{Name: "wire", Topic: "exchange", Default: "fp32", Names: dist.ValueFormats,
		Help: "format in which the values of an exchange are sent, and to which both ends round them: fp32, fp16 or " +
			"bf16"},
	{Name: "clip_messages", Topic: "exchange", Range: "[0, inf)", Want: "0, for no limit, or a norm above it",
		Needs: []setting.Need{needsDifferences}, Since: "0.2.0",
		Help: "largest norm of the difference between a vector that is received and the agent's own: a larger one is " +
			"scaled down to it, against an agent that sends wrong values; 0 is no limit"},
}
