package acceptance

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Line is a line of the acceptance table.
type Line struct {
	What     string `json:"what"`
	Bar      string `json:"bar"`
	Measured string `json:"measured"`
	Verdict  string `json:"verdict"` // met, missed, or could not run: why
}

const (
	met    = "met"
	missed = "missed"
)

// Targets.
const (
	eagerTarget    = 1.0  // images a second over PyTorch's
	compiledTarget = 1.2  // least ratio to torch.compile
	rooflineTarget = 0.6  // time of moving the bytes, over the measured time
	stepTarget     = 35.0 // µs of an iteration of figure 1
	millionTarget  = 60.0 // seconds of a million of them
	sparseTarget   = 0.7  // least share of a copy's speed
	idleTarget     = 0.02
	memoryBar      = 0.05
	tokensTarget   = 220_000 // tokens a second of GPT-2's gradient
	languageTarget = 1.0     // ratio of tokens a second to the compiled PyTorch model
	// curveTarget is the allowed relative difference of a loss from that on the CPU. In fp32 a
	// gradient is within a relative error of 1e-5 of the CPU's (selftest), and so is the decrease
	// of the loss. The curvature of the loss may amplify the error tenfold over a thousand
	// iterations. The first row has no error.
	curveTarget = 1e-4
)

// Lines compares the results with the targets, the targets of the headline first.
func (r *Results) Lines() []Line {
	precisions := r.options.judged()
	slices.Reverse(precisions) // fp16 is named before bf16
	named := strings.Join(precisions, " and ")
	lines := []Line{
		r.atMost(r.stepPart(), "figure 1, an iteration of 10 agents × 256", "iteration_us", stepTarget, "%.4g µs", 1),
		r.line("figure1/million", "figure 1, 10⁶ iterations", fmt.Sprintf("≤ %.0f s", millionTarget),
			func(v map[string]float64) (string, bool, bool) {
				seconds, ok := v["seconds_of_million"]
				measured := fmt.Sprintf("%.3g s", seconds)
				if n := v["iterations"]; n < 1e6 {
					measured += fmt.Sprintf(", by the rate of %.0f", n)
				}
				return measured, seconds <= millionTarget, ok
			}),
		r.ofNetworks("gradients in "+named+" over PyTorch, eager", "eager_ratio", eagerTarget, "%.2f ×", 1),
		r.ofNetworks("the same over torch.compile", "compiled_ratio", compiledTarget, "%.2f ×", 1),
		r.ofNetworks("the same, of the memory's roofline", "roofline", rooflineTarget, "%.0f %%", 100),
		r.atLeast(languagePart, "GPT-2, gradient in bf16, tokens a second", "ours", tokensTarget, "%.0f"),
		r.atLeast(languagePart, "the same over torch.compile", "compiled_ratio", languageTarget, "%.2f ×"),
	}
	for _, of := range append([]string{"megakernel"}, all...) {
		part, what := "selftest/"+of, "self-test in "+of
		if part == megakernelPart {
			if r.Device == "cpu" {
				continue
			}
			what = "kernels in a cooperative launch"
		}
		lines = append(lines, r.line(part, what, "0 checks fail",
			func(v map[string]float64) (string, bool, bool) {
				failed, ok := v["failed"]
				return fmt.Sprintf("%.0f of %.0f fail", failed, v["checks"]), failed == 0, ok
			}))
	}
	return append(lines,
		r.atMost("figure1/curve", "figure 1, losses of 1,000 iterations from the CPU's", "far", curveTarget, "%.1e", 1),
		r.line("vectors/sparse", "sparse update of ResNet-50 over a copy", fmt.Sprintf("≥ %.0f %%", 100*sparseTarget),
			func(v map[string]float64) (string, bool, bool) {
				share, ok := v["share"]
				return fmt.Sprintf("%.0f %%", 100*share), share >= sparseTarget, ok
			}),
		r.atMost("loader/idle", "GPU idle under the real loader", "idle", idleTarget, "%.1f %%", 100),
		r.atMost("memory/agents", "memory of 8 agents from the forecast", "far", memoryBar, "%.1f %%", 100),
		r.line("training/repeat", "trainings that repeat to the last bit", "all",
			func(v map[string]float64) (string, bool, bool) {
				runs, ok := v["runs"]
				return fmt.Sprintf("%.0f of %.0f", v["same"], runs), v["same"] == runs, ok
			}))
}

// stepPart is the part with the time of an iteration: the one beside PyTorch where the other has
// none.
func (r *Results) stepPart() string {
	if of := r.firstOf("iteration_us", alonePart, stepPart); of != nil {
		return of.Part
	}
	return stepPart
}

// newLine returns the line of a measurement that has not been run.
func newLine(what, bar string) Line {
	return Line{What: what, Bar: bar, Measured: "–", Verdict: "could not run: it has not yet been run"}
}

// whyNot returns the verdict on an outcome without the value.
func (o *Outcome) whyNot(others ...string) string {
	return "could not run: " + cmp.Or(append([]string{o.Reason, strings.Join(o.Notes, "; ")}, others...)...)
}

// line returns the line of one part. see returns the measurement, whether it meets the target, and
// whether it exists.
func (r *Results) line(part, what, bar string,
	see func(values map[string]float64) (measured string, enough, any bool)) Line {
	l := newLine(what, bar)
	out := r.outcome(part)
	if out == nil {
		return l
	}
	measured, enough, any := see(out.Values)
	if !any {
		l.Verdict = out.whyNot(out.Summary, "it measured nothing")
		return l
	}
	if l.Measured, l.Verdict = measured, missed; enough {
		l.Verdict = met
	}
	return l
}

func (r *Results) atLeast(part, what, key string, bar float64, format string) Line {
	return r.line(part, what, "≥ "+fmt.Sprintf(format, bar), func(v map[string]float64) (string, bool, bool) {
		got, ok := v[key]
		return fmt.Sprintf(format, got), got >= bar, ok
	})
}

func (r *Results) atMost(part, what, key string, bar float64, format string, unit float64) Line {
	return r.line(part, what, "≤ "+fmt.Sprintf(format, unit*bar), func(v map[string]float64) (string, bool, bool) {
		got, ok := v[key]
		return fmt.Sprintf(format, unit*got), got <= bar, ok
	})
}

// ofNetworks returns a line of the least value over the gradients in the required precisions.
func (r *Results) ofNetworks(what, key string, bar float64, format string, unit float64) Line {
	s := r.options.shapes()
	l := newLine(s.network+", "+what, "≥ "+fmt.Sprintf(format, unit*bar))
	least, where, seen, wanted := math.Inf(1), "", 0, 0
	for _, g := range s.gradients(r.options.judged()) {
		wanted++
		out := r.outcome(g.name())
		if out == nil {
			continue
		}
		v, ok := out.Values[key]
		if !ok {
			l.Verdict = out.whyNot("the device has no such measure")
			continue
		}
		seen++
		if v < least {
			least, where = v, g.name()
		}
	}
	if seen == 0 {
		return l
	}
	l.Measured = fmt.Sprintf(format, unit*least) + fmt.Sprintf(" at least (%s; %d of %d seen)",
		strings.TrimPrefix(where, s.network+"/"), seen, wanted)
	switch {
	case least < bar:
		l.Verdict = missed
	case seen < wanted:
		l.Verdict = met + " so far"
	default:
		l.Verdict = met
	}
	return l
}
