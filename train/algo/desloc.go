package algo

import "fspda/train/setting"

// DESLOC is local SGD with AdamW or Muon whose moving averages are averaged over the agents, too,
// each at the ends of its own rounds (Iacob and others 2025). With a mean at the end of each round
// it is Local Adam (Cheng and Glasgow 2025). Agents with different data then have the optimum in
// common, which averages of their own keep them from.
//
// Departures: AdamW keeps its correction of the bias of the averages, which the paper prints
// without. The mean is taken at the end of a round and not before the next step, which is the same.
type DESLOC struct{ LocalSGD }

var desLoc = Method{Name: "des-loc", Keys: []setting.Key{LocalSteps}, Params: momentKeys(3, 6), Check: momentsKept,
	New: func(s Settings) Algorithm { return DESLOC{newLocalSGD(s)} }}

func (DESLOC) Name() string { return "des-loc" }

func (a DESLOC) Traits() Traits {
	t := a.LocalSGD.Traits()
	t.Optimizers = []string{adamWKind.Name, muonKind.Name}
	t.About.Travels += ", and moving averages of its optimizer at some ends"
	t.About.Bits = "2·(n-1)·v·d·(1 + 1/3 + 1/6) a round"
	t.About.Source = "Iacob and others 2025; Local Adam: Cheng and Glasgow 2025"
	return t
}
