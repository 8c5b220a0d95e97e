//go:build !windows

package cli

import (
	"slices"
	"testing"

	"fspda/train"
)

// replayedMethod is a method with its recursion.
type replayedMethod struct {
	algo, form string
	// optimizers are those that it takes; nil is sgd.
	optimizers []string
	// places says that its correction may be placed, and tracks that it tracks gradients.
	places, tracks bool
	// masks says that exchanges have masks, and fixed that it averages with a fixed matrix.
	masks, fixed bool
	// collective says that it has no graph, and rounds that local-steps says when edges are active.
	collective, rounds bool
	// constant says that it takes no schedule.
	constant bool
	// graphs and edges are values of these settings; nil are those that most methods take.
	graphs, edges []string
	run           func(r *recursion)
}

var (
	anyOf      = []string{"sgd", "heavy-ball", "nesterov", "adamw"}
	withBall   = []string{"heavy-ball", "nesterov"}
	onlyBall   = []string{"heavy-ball"}
	onlyMuon   = []string{"muon"}
	full       = []string{"full"}
	pairs      = []string{"one-edge", "matching"}
	broadcasts = []string{"full", "coin(0.5)", "broadcast(0.5)", "broadcast-one"}
	onComplete = []string{"complete"}
)

// replayed lists the methods, some in several forms.
var replayed = []replayedMethod{
	{algo: "dsgd", optimizers: anyOf, masks: true, edges: pairs, run: (*recursion).dsgd},
	{algo: "dmsgd", optimizers: onlyBall, run: (*recursion).dmsgd},
	{algo: "qg-dsgdm", optimizers: withBall, run: (*recursion).quasiGlobal},
	{algo: "decentlam", optimizers: onlyBall, graphs: onComplete, edges: full, run: (*recursion).decentlam},
	{algo: "sgp", optimizers: anyOf, graphs: []string{"complete", "exponential"},
		edges: []string{"one-peer-exp", "static-exp", "push(1)", "push(2)"}, run: (*recursion).push},
	{algo: "relaysgd", optimizers: anyOf, graphs: []string{"path", "star", "binary-tree"}, edges: full,
		run: (*recursion).relay},
	{algo: "powergossip", optimizers: anyOf, run: (*recursion).powerGossip},

	{algo: "fspda-sa", optimizers: anyOf, places: true, masks: true, edges: pairs, run: (*recursion).sa},
	{algo: "fspda-sa", form: "muon", optimizers: onlyMuon, places: true, masks: true, edges: pairs,
		run: (*recursion).sa},
	{algo: "dsgd", form: "muon", optimizers: onlyMuon, masks: true, edges: pairs, run: (*recursion).dsgd},
	{algo: "fspda-storm", masks: true, edges: pairs, run: (*recursion).storm},
	{algo: "fspda-sa-sketch", optimizers: anyOf, places: true, edges: pairs, run: (*recursion).saSketch},
	{algo: "fspda-sa-ef", optimizers: anyOf, places: true, edges: append(pairs, "full"), run: (*recursion).saCopies},
	{algo: "fspda-async", constant: true, masks: true, edges: []string{"one-edge"}, run: (*recursion).async},
	{algo: "fspda-async-storm", constant: true, masks: true, edges: []string{"one-edge"}, run: (*recursion).asyncSTORM},
	{algo: "extra", fixed: true, edges: full, run: (*recursion).extra},
	{algo: "prox-gpda", constant: true, edges: full, run: (*recursion).prox},

	{algo: "dsgt", form: "semi-atc", optimizers: anyOf, tracks: true, run: func(r *recursion) {
		r.tracking("semi-atc")
	}},
	{algo: "dsgt", form: "cta", optimizers: anyOf, tracks: true, run: func(r *recursion) {
		r.tracking(param(r, "form", "cta"))
	}},
	{algo: "dsgt", form: "atc", optimizers: anyOf, tracks: true, run: func(r *recursion) {
		r.tracking(param(r, "form", "atc"))
	}},
	{algo: "diging", optimizers: anyOf, tracks: true, run: func(r *recursion) { r.tracking("cta") }},
	{algo: "next", optimizers: anyOf, tracks: true, run: (*recursion).next},
	{algo: "gt-dsgdm", optimizers: withBall, run: func(r *recursion) {
		r.corrected = true
		r.tracking(param(r, "form", "semi-atc", "cta", "atc"))
	}},
	{algo: "momentum-tracking", optimizers: withBall, run: func(r *recursion) {
		r.tracking(param(r, "form", "cta", "semi-atc", "atc"))
	}},
	{algo: "gt-adam", optimizers: []string{"gt-adam"}, run: func(r *recursion) {
		r.corrected = true
		r.tracking(param(r, "form", "cta", "semi-atc", "atc"))
	}},
	{algo: "d2", fixed: true, optimizers: anyOf, places: true, graphs: onComplete, edges: full,
		run: func(r *recursion) { r.led(1) }},
	{algo: "exact-diffusion", fixed: true, optimizers: anyOf, places: true, edges: full,
		run: (*recursion).exactDiffusion},
	{algo: "edm", fixed: true, optimizers: withBall, graphs: onComplete, edges: full,
		run: func(r *recursion) { r.led(1) }},
	{algo: "led", fixed: true, optimizers: anyOf, places: true, graphs: onComplete, edges: full, rounds: true,
		run: func(r *recursion) { r.led(one(r, "local-steps", 2, 4)) }},
	{algo: "kgt", fixed: true, optimizers: anyOf, edges: full, rounds: true, run: (*recursion).kgt},
	{algo: "scaffnew", fixed: true, optimizers: anyOf, places: true,
		edges: []string{"full", "coin(0.5)", "periodic(2)"}, run: (*recursion).scaffnew},

	{algo: "choco", form: "identity", fixed: true, optimizers: anyOf, edges: broadcasts, run: choco("identity")},
	{algo: "choco", form: "randk", fixed: true, optimizers: anyOf, edges: broadcasts, run: choco("randk")},
	{algo: "choco", form: "topk", fixed: true, optimizers: anyOf, edges: broadcasts, run: choco("topk")},
	{algo: "choco", form: "qsgd", fixed: true, optimizers: anyOf, edges: broadcasts,
		run: choco("qsgd(255)", "qsgd-scaled(63)")},
	{algo: "choco", form: "sign", fixed: true, optimizers: anyOf, edges: broadcasts, run: choco("sign")},
	{algo: "beer", fixed: true, edges: broadcasts, run: (*recursion).beer},
	{algo: "ticopd", fixed: true, optimizers: anyOf, places: true, edges: broadcasts, run: (*recursion).ticopd},
	{algo: "docom", fixed: true, edges: broadcasts, run: (*recursion).docom},
	{algo: "swarm", form: "nonblocking", optimizers: anyOf, edges: pairs, run: (*recursion).swarm},
	{algo: "swarm", form: "blocking", optimizers: anyOf, edges: pairs, run: (*recursion).swarmBlocking},

	{algo: "local-sgd", optimizers: anyOf, collective: true, run: (*recursion).localSGD},
	{algo: "local-sgd", form: "adamw", optimizers: []string{"adamw"}, collective: true, run: (*recursion).localSGD},
	{algo: "des-loc", optimizers: []string{"adamw"}, collective: true, run: (*recursion).desLoc},
	{algo: "diloco", form: "adamw", optimizers: []string{"adamw"}, collective: true, run: (*recursion).diloco},
	{algo: "diloco", optimizers: anyOf, collective: true, run: (*recursion).diloco},
	{algo: "diloco", form: "quantized", optimizers: anyOf, collective: true, run: (*recursion).quantizedDiLoCo},
	{algo: "diloco", form: "late", optimizers: anyOf, collective: true, run: (*recursion).lateDiLoCo},
	{algo: "sparseloco", optimizers: anyOf, collective: true, run: (*recursion).sparseLoCo},
	{algo: "muloco", optimizers: onlyMuon, collective: true, run: (*recursion).diloco},
	{algo: "noloco", optimizers: anyOf, edges: pairs, run: (*recursion).noloco},
	{algo: "gasloc", optimizers: anyOf, edges: pairs, run: (*recursion).gasloc},
	{algo: "sparta", optimizers: anyOf, collective: true, masks: true, run: (*recursion).sparta},
	{algo: "sparta-diloco", optimizers: anyOf, collective: true, masks: true, run: (*recursion).spartaDiLoCo},
	{algo: "streaming-diloco", optimizers: anyOf, collective: true, run: (*recursion).streamingDiLoCo},
	{algo: "demo", optimizers: []string{"demo"}, collective: true, run: (*recursion).demo},
	{algo: "sgd", optimizers: anyOf, collective: true, run: (*recursion).sgd},
	{algo: "sgd", form: "adamw", optimizers: []string{"adamw"}, collective: true, run: (*recursion).sgd},
}

// Every method that the command knows has a recursion in the table above.
func TestEveryMethodHasARecursion(t *testing.T) {
	for _, name := range train.Algorithms() {
		if !slices.ContainsFunc(replayed, func(m replayedMethod) bool { return m.algo == name }) {
			t.Errorf("%s: state its recursion in float64, and add it to the table replayed", name)
		}
	}
}
