package algo

import (
	"fmt"

	"fspda/train/setting"
)

// checkGossipGain checks gamma and the gains of the dual of FSPDA.
func checkGossipGain(r Run) ([]string, error) {
	s := r.Settings()
	return r.CheckGain("gamma", s.Param("gamma"), s.Eta*s.Param("beta"))
}

// checkMixing requires all eigenvalues of W to be above -1. With an eigenvalue of -1, averaging
// maps a difference that alternates between neighbours to its negative, so it never shrinks.
func checkMixing(r Run) ([]string, error) {
	if r.Settings().Agents == 1 {
		return nil, nil
	}
	if least := r.LeastEigenvalue(); least < -1+1e-9 {
		return nil, setting.Invalid("mixing", r.Text("mixing"), "has the eigenvalue %.6g on graph %s; %s needs all "+
			"above -1: use metropolis, or smaller weights", least, r.Text("graph"), r.Text("algo"))
	}
	return nil, nil
}

// checkDiffusion requires the eigenvalues of W to be above -1/3, at which differences between
// agents that no curvature shrinks stay as they are. A round maps them and y to W·(x-y) and y +
// (I-W)·(x-y), whatever the number of its steps.
func checkDiffusion(r Run) (warnings []string, err error) {
	if r.Settings().Agents == 1 {
		return nil, nil
	}
	mixing, graph, name := r.Text("mixing"), r.Text("graph"), r.Text("algo")
	switch least := r.LeastEigenvalue(); {
	case least < -1.0/3-1e-9:
		lazy := "half-lazy(" + mixing + ")"
		return nil, setting.InsteadOf("mixing", mixing, lazy, "has the eigenvalue %.6g on graph %s, and %s diverges "+
			"below -1/3: use %s, which has none below 0", least, graph, name, lazy)
	case least < -1.0/3+1e-9:
		return []string{fmt.Sprintf("mixing %s has the eigenvalue -1/3 on graph %s, at which %s leaves some "+
			"differences between agents as they are: half-lazy(%[1]s) does not", mixing, graph, name)}, nil
	}
	return nil, nil
}

// refuseExpansion refuses a compressor with which public copies may move away from the models.
func refuseExpansion(r Run, c Contraction) error {
	return setting.Invalid("compress", r.Text("compress"), "is no contraction here (it may move up to %.3g "+
		"times the square of a vector away): use qsgd-scaled with as many levels, or more levels", 1-c.Message)
}

// checkCompressed checks the consensus step size of gossip with compressed differences.
func checkCompressed(r Run) (warnings []string, err error) {
	s, c := r.Settings(), r.Contraction()
	theta := s.Param("theta")
	switch {
	case !(c.Message > 0):
		return nil, refuseExpansion(r, c)
	case s.Agents == 1:
		return nil, nil
	case !(theta > 0) || theta > 1:
		return nil, setting.Invalid("theta", theta,
			"must be above 0 and at most 1: it is the share of the way to the neighbours' mean")
	case c.Iteration == 0: // nothing is averaged
		return nil, nil
	case theta >= 2*c.Limit:
		return nil, setting.Invalid("theta", theta, "diverges: an agent's public copy keeps %.3g of it an iteration, "+
			"and on graph %s theta has to stay below %.3g: use theta auto, a denser compressor, or more senders",
			c.Iteration, r.Text("graph"), c.Limit)
	case theta > c.Limit:
		return []string{fmt.Sprintf("theta %v is above %.3g, from which on the differences between agents may grow: "+
			"theta auto is half of that", theta, c.Limit)}, nil
	}
	return nil, nil
}
