package config

import (
	"fmt"
	"strings"
)

// About is what the table of methods says of a method: docs/methods.md and fspda train --algo help.
// In formulas nE is the number of active edges, n that of agents, d the length of the model, k the
// number of coordinates in a mask, v the bits of a value and iota those of an index.
type About struct {
	Sends  string // what travels over an active edge, each way
	Bits   string // of all agents in one iteration, with shared seeds
	Memory string // vectors of an agent besides model, gradient and optimizer
	Skew   string // what data that differ between agents do
	Graphs string // graphs and edge processes
	Source string
}

// What several methods have in common.
const (
	exactOnSkew  = "exact"
	biasedOnSkew = "bias, proportional to alpha"
	anyGraph     = "any graph and process"
	staticGraph  = "any graph, all edges"
)

// abouts describes the algorithms of this module.
var abouts = map[string]About{
	"fspda-sa": {"k values of the model", "nE 2 v k", "1 (dual)", exactOnSkew, anyGraph, "FSPDA, equation 8"},
	"fspda-storm": {"k values of two models", "nE 4 v k", "4, or 5", exactOnSkew, anyGraph,
		"FSPDA, equation 10, appendix"},
	"fspda-async": {"k values of the model", "nE 2 v k", "2", exactOnSkew, "any graph, a clock on every edge",
		"FSPDA, appendix on asynchronous implementation"},
	"fspda-async-storm": {"k values of two models", "nE 4 v k", "5, or 7", exactOnSkew,
		"any graph, a clock on every edge", "derived from FSPDA, equation 10 and that appendix"},
	"dsgd": {"k values of the model", "nE 2 v k", "0", biasedOnSkew, anyGraph,
		"Lian and others 2017; Koloskova and others 2020"},
	"dmsgd": {"model and momentum", "nE 4 v d", "1", biasedOnSkew, anyGraph, "Yu, Jin and Yang 2019"},
	"qg-dsgdm": {"the model", "nE 2 v d", "1, or 2 with local steps", "bias of dsgd, whatever mu",
		"any graph; momentum below about 0.5 where few edges of many agents are active together",
		"Lin, Karimireddy, Stich and Jaggi 2021, algorithm 1"},
	"decentlam": {"the model", "nE 2 v d", "1", "bias of dsgd, whatever mu",
		"any graph; momentum below about 0.5 where few edges are active together",
		"Yuan and others 2021, algorithm 2"},
	"d2": {"the model", "nE 2 v d", "1", exactOnSkew, staticGraph + "; eigenvalues of W above -1/3",
		"Tang, Lian, Yan, Zhang and Liu 2018"},
	"scaffnew": {"the model, when the coin says so", "nE 2 v d", "1", exactOnSkew, "any graph, all edges or none",
		"Mishchenko, Malinovsky, Stich and Richtárik 2022"},
	"led": {"the model, at the end of a round", "nE 2 v d a round", "1", exactOnSkew,
		staticGraph + ", in rounds; eigenvalues of W above -1/3", "Alghunaim 2024"},
	"kgt": {"two vectors, at the end of a round", "nE 4 v d a round", "2", exactOnSkew, staticGraph + ", in rounds",
		"Liu, Lin, Koloskova and Stich 2024"},
	"diging": {"model and tracker", "nE 4 v d", "1", exactOnSkew, anyGraph, "Nedić, Olshevsky and Shi 2017"},
	"next":   {"model and tracker", "nE 4 v d", "1", exactOnSkew, anyGraph, "Di Lorenzo and Scutari 2016"},
	"extra":  {"the model", "nE 2 v d", "1", exactOnSkew, staticGraph, "Shi, Ling, Wu and Yin 2015"},
	"prox-gpda": {"the model", "nE 2 v d", "1", exactOnSkew, staticGraph,
		"Hong, Hajinezhad and Zhao 2017"},
	"edm": {"the model", "nE 2 v d", "1", exactOnSkew, staticGraph + "; eigenvalues of W above -1/3",
		"Hu and others 2025: d2 with momentum"},
	"exact-diffusion": {"the model", "nE 2 v d", "1", exactOnSkew, staticGraph,
		"Yuan, Ying, Zhao and Sayed 2018: d2 with (I+W)/2"},
	"dsgt": {"model and tracker; form atc one after the other", "nE 4 v d", "1; form atc 2", exactOnSkew, anyGraph,
		"Pu and Nedić 2021; form atc Xu, Zhu, Soh and Xie 2015"},
	"gt-dsgdm": {"model and tracker", "nE 4 v d", "1; form atc 2", exactOnSkew, anyGraph,
		"dsgt with momentum behind the tracker"},
	"momentum-tracking": {"model and tracker", "nE 4 v d", "1; form atc 2", exactOnSkew, anyGraph,
		"Takezawa and others 2022"},
	"gt-adam": {"model and tracker", "nE 4 v d", "2; form atc 3", "error of the order of alpha", anyGraph,
		"Carnevale, Farina, Notarnicola and Notarstefano 2022"},
	"sgp": {
		"the model, one way; a weight on irregular graphs",
		"v d an arc; + 32 with a weight",
		"0",
		biasedOnSkew,
		"directed: one-peer-exp, static-exp, push(k), arcs(PATH)",
		"Assran, Loizou, Ballas and Rabbat 2019, algorithm 1",
	},
	"relaysgd": {"a sum of models", "2(n-1) v d", "1, and 1 an edge", exactOnSkew, "trees, all edges",
		"Vogels and others 2021, algorithm 1"},
	"powergossip": {"one product of each matrix with a vector; vectors whole",
		"nE 2 v (rows or columns of all matrices + rest)", "0; rows + columns of all matrices an edge", biasedOnSkew,
		anyGraph, "Vogels, Karimireddy and Jaggi 2020, algorithm 1, rank 1"},
	"fspda-sa-sketch": {"one product of each matrix with a vector; vectors whole",
		"nE 2 v (rows or columns of all matrices + rest)", "1; rows + columns of all matrices an edge", exactOnSkew +
			" (measured; experimental)", anyGraph, "FSPDA-SA over the sketches of powergossip"},
	"beer": {"two compressed differences", "payloads of both; indices of randk once", "5", exactOnSkew,
		"any graph, agents that broadcast", "Zhao, Li, Li, Richtárik and Chi 2022, algorithm 1"},
	"choco": {"a compressed difference", "payload of each message", "2", biasedOnSkew,
		"any graph, agents that broadcast", "Koloskova, Stich and Jaggi 2019, algorithm 2; early: EF21"},
	"swarm": {"two copies of the model, or codes of them; blocking one", "nE 4 v d; blocking nE 2 v d", "2; blocking 0",
		biasedOnSkew, "any graph, pairs", "Nadiradze and others 2021"},
	"local-sgd": {"the model, an all-reduce at the end of a round", "2(n-1) v d a round", "1",
		"bias, which grows with local_steps", "none", "McMahan and others 2017; Stich 2019"},
	"diloco": {"the change of the model over a round, an all-reduce at its end", "2(n-1) v d a round", "2",
		"bias, which grows with local_steps", "none", "Douillard and others 2023, algorithm 1"},
	"noloco": {"the change of the model over a round, and where it began", "4 v d a pair and round", "2",
		"bias, which grows with local_steps", "any graph, pairs, at the end of a round",
		"Kolehmainen and others 2025, equations 1 to 3"},
	"gasloc": {"the slow model, at the end of a round", "nE 2 v d a round", "2", "bias, which grows with local_steps",
		"any graph, at the end of a round; outer_momentum below about 0.6 in pairs",
		"Cagnasso, Belilovsky and Oyallon 2026; experimental"},
	"sparta": {"k values of the model, an all-reduce", "2(n-1) v k", "0", "bias, which grows as k falls", "none",
		"exogym 2025"},
	"sparta-diloco": {"as sparta, and at the end of a round the change of the model over it",
		"2(n-1) v k, and 2(n-1) v d a round",
		"2", "bias, which grows with outer_steps", "none", "exogym 2025; Douillard and others 2023"},
	"streaming-diloco": {"the change of one part of the model over its round, an all-reduce", "2(n-1) v k an exchange",
		"2", "bias, which grows with local_steps / density", "none", "Douillard and others 2025, without overlap"},
	"demo": {"k cosine coefficients of each chunk of the momentum, to all agents", "n(n-1) k (v + iota) a chunk", "1",
		"bias: steps are signs", "none", "Peng, Quesnelle and Kingma 2024"},
	"sgd": {"the gradient, an all-reduce", "2(n-1) v d", "0", exactOnSkew, "none",
		"the central reference"},
}

// about returns what the table says of a method.
func (m Method) about() About {
	if a, ok := abouts[m.Name]; ok {
		return a
	}
	return m.About
}

// clocks says in which times and on how many machines a method runs.
func (m Method) clocks() string {
	if m.realTime() {
		return "virtual time, real time, many machines"
	}
	return "virtual time, many machines"
}

// aboutHeads are the heads of the columns of the table of methods.
var aboutHeads = []string{"method", "sends over an edge", "bits an iteration", "vectors", "agents of different data",
	"graphs", "runs in", "source"}

func (m Method) aboutCells() []string {
	a := m.about()
	return []string{m.Name, a.Sends, a.Bits, a.Memory, a.Skew, a.Graphs, m.clocks(), a.Source}
}

// MethodTable is the table of all methods as Markdown.
func MethodTable() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n| %s |\n|%s\n", strings.Join(aboutHeads, " | "), strings.Repeat("---|", len(aboutHeads)))
	for _, m := range registered() {
		cells := m.aboutCells()
		cells[0] = "`" + cells[0] + "`"
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
	}
	return b.String() + "\n"
}

// methodLegend explains MethodHelp.
const methodLegend = `In the formulas nE is the number of active edges, n that of agents, d the length of the model, k the number
of coordinates that an exchange carries (--density), v the bits of a value (32, or 16 with --wire fp16) and iota
those of an index. Bits are those of all agents together. Vectors are what an agent keeps besides model, gradient and
optimizer. "exact" means that agents of different data, with exact gradients and a constant step size, reach the
minimum of the common objective; the others end at a distance from it. Settings with their default in brackets are
set by --param NAME=VALUE, the others are flags.

`

// MethodHelp is the table of all methods as text: a paragraph for each, with its settings.
func MethodHelp() string {
	var b strings.Builder
	b.WriteString(methodLegend)
	for _, m := range registered() {
		cells := m.aboutCells()
		fmt.Fprintf(&b, "%s\n", cells[0])
		for k, head := range aboutHeads[1:] {
			fmt.Fprintf(&b, "  %-26s %s\n", head, cells[k+1])
		}
		fmt.Fprintf(&b, "  %-26s %s\n", "settings", m.settings())
		fmt.Fprintf(&b, "  %-26s %s\n", "optimizers", m.optimizers())
	}
	return b.String()
}

// settings lists the flags that the method reads and not every one has, and its own settings.
func (m Method) settings() string {
	var words []string
	if m.Dual {
		words = append(words, "--eta")
	}
	for _, key := range m.Keys {
		words = append(words, "--"+strings.ReplaceAll(key, "_", "-"))
	}
	if m.Mixing {
		words = append(words, "--mixing")
	}
	if m.Masks {
		words = append(words, "--density", "--mask")
	}
	for _, p := range m.Params {
		words = append(words, fmt.Sprintf("%s (%s)", p.Name, paramText(p.initial())))
	}
	if len(words) == 0 {
		return "none of its own"
	}
	return strings.Join(words, ", ")
}

// optimizers lists the values of the key optimizer, the default first.
func (m Method) optimizers() string {
	if m.Optimizers == nil {
		return optimizerSGD
	}
	return strings.Join(m.Optimizers, ", ")
}
