package web

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	"fspda/internal/units"
)

type run struct {
	name    string // name of the run's folder
	metrics *metrics
	summary settings     // nil if the run has not written it
	config  settings     // nil if there is none
	yaml    string       // text of config.yaml
	shards  *shards      // nil if there is none
	samples []textSample // samples written by a language model
	missing []string     // names of files that do not exist
}

// final returns a number at the end of the run: from the summary, else from the last evaluation.
func (r *run) final(key string) float64 {
	if _, ok := r.summary[key]; ok { // null means undefined: do not fall back to an older number
		return r.summary.number(key)
	}
	return r.metrics.last(key)
}

// setting returns a setting as text: from the configuration, else from the summary.
func (r *run) setting(key string) string { return first(key, r.config, r.summary) }

// accounting returns how bits_total and bits_agent_max are counted.
func (r *run) accounting() string { return accounting(r.config, r.summary) }

// fact is a named value with an optional explanation.
type fact struct{ Name, Value, Note string }

// failureKey is the key of summary.json that says why a run has failed to converge.
const failureKey = "failed_to_converge"

// status returns how the run ended, and the CSS class of that: good, bad or empty.
func (r *run) status() (text, class string) {
	if r.summary.text(failureKey) != "" {
		return r.summary.text("status") + ", failed to converge", "bad"
	}
	switch s := r.summary.text("status"); s {
	case "":
		return "no summary yet", ""
	case "finished":
		return s, "good"
	case "diverged":
		return s, "bad"
	default:
		return s, ""
	}
}

// sentence describes the run, which goes on or has ended. It omits unknown settings.
func (r *run) sentence(goesOn bool) string {
	var b strings.Builder
	part := func(format, key string) {
		v := r.setting(key)
		if n, err := strconv.ParseUint(v, 10, 64); err == nil && key != "seed" {
			v = grouped(float64(n))
		}
		if v != "" {
			fmt.Fprintf(&b, format, v)
		}
	}
	trains := "trained"
	if goesOn {
		trains = "trains"
	}
	if r.setting("algo") == "" {
		b.WriteString("An unnamed algorithm " + trains)
	}
	part("%s "+trains, "algo")
	switch r.setting("model") {
	case "":
		b.WriteString(" a model")
	default:
		part(" the model %s", "model")
	}
	part(" on %s", "data")
	if r.setting("agents") == "1" {
		b.WriteString(" with 1 agent")
	} else {
		part(" with %s agents", "agents")
	}
	part(" on the graph %s", "graph")
	part(", edge process %s", "edges")
	part(", mask %s", "mask")
	part(" of density %s", "density")
	part("; data split: %s", "partition")
	part("; batch %s", "batch")
	part("; %s iterations", "iterations")
	part("; seed %s", "seed")
	if v := first("device", r.summary, r.config); v != "" { // the config may say auto
		fmt.Fprintf(&b, "; device %s", v)
	}
	b.WriteByte('.')
	return b.String()
}

// evaluated returns the number of agents whose own models are evaluated, NaN if that is all.
func (r *run) evaluated() float64 {
	if k := r.config.number("eval_agents"); k > 0 && k < r.config.number("agents") {
		return k
	}
	return math.NaN()
}

// looked explains numbers of the worst agent, and joins that to another note.
func (r *run) looked(note string) string {
	k := r.evaluated()
	switch {
	case !finite(k):
		return note
	case note == "":
		return "of " + grouped(k) + " agents looked at"
	default:
		return note + "; of " + grouped(k) + " agents looked at"
	}
}

// headline returns the main numbers for the top of the page.
func (r *run) headline() []fact {
	first := fact{"Test accuracy", units.Percent(r.final("test_acc_avg")), "of the mean model"}
	if p := r.metrics.last("perplexity"); finite(p) {
		first = fact{"Perplexity", units.Significant(p, 4), "of the mean model; " +
			units.Significant(r.metrics.last("bits_per_byte"), 4) + " bits per byte"}
	}
	return []fact{
		first,
		{"Worst agent", units.Percent(r.final("test_acc_min")), r.looked("test accuracy")},
		{"Training loss", units.Significant(r.final("train_loss_worst"), 4), r.looked("of the worst agent")},
		{"Consensus error", units.Significant(r.final("consensus"), 3), "sum of squared distances to the mean model"},
		{"Sent", units.SI(r.final("bits_total"), "bit"), "by all agents, " + r.accounting() + " accounting"},
		{"Wall time", units.Duration(r.final("wall_s")), speed(r.final("iterations_per_s"))},
	}
}

func speed(v float64) string {
	if !finite(v) {
		return ""
	}
	return units.Significant(v, 3) + " iterations/s"
}

// results returns the table of all measurements at the end.
func (r *run) results() []fact {
	m := r.metrics
	best := m.best("test_acc_avg")
	when := ""
	if row := m.reach("test_acc_avg", best); row >= 0 {
		when = "first at iteration " + grouped(m.column["iteration"][row])
	}
	facts := []fact{
		{"Test accuracy, mean model", units.Percent(r.final("test_acc_avg")), "the average of all agents' parameters"},
		{"Best test accuracy, mean model", units.Percent(best), when},
		{"Test accuracy, mean of agents", units.Percent(r.final("test_acc_mean")), r.looked("")},
		{"Test accuracy, worst agent", units.Percent(r.final("test_acc_min")), r.looked("")},
		{"Test accuracy, best agent", units.Percent(m.last("test_acc_max")), r.looked("")},
		{"Test loss, mean model", units.Significant(m.last("test_loss_avg"), 4), ""},
		{"Training loss, worst agent", units.Significant(r.final("train_loss_worst"), 4),
			r.looked("over the whole training set, with the L2 term")},
		{"Training loss, mean model", units.Significant(r.final("train_loss_avg"), 4), ""},
		{"Squared gradient norm, worst agent", units.Significant(r.final("grad_sq_worst"), 4),
			"of the whole training loss"},
		{"Squared gradient norm, mean model", units.Significant(m.last("grad_sq_avg"), 4), ""},
		{"Consensus error", units.Significant(r.final("consensus"), 4),
			"sum over agents of the squared distance to the mean model"},
		{"Consensus error, farthest agent", units.Significant(m.last("consensus_max"), 4), ""},
		{"Norm of the sum of duals", units.Significant(r.final("dual_sum"), 3),
			"zero but for rounding; only for algorithms with duals"},
		{"Iterations", grouped(r.iterations()), epochs(m.last("epoch"))},
		{"Gradients computed", grouped(m.last("grads_total")), "by all agents"},
		{"Parameters of one agent", grouped(r.final("dim")), ""},
		{"Wall time", units.Duration(r.final("wall_s")), speed(r.final("iterations_per_s"))},
	}
	if here := r.final("agents_present"); here < r.summary.number("agents") {
		facts = append(facts, fact{"Agents present at the end", grouped(here),
			"the others were dropped: no number but the totals of bits and gradients contains them"})
	}
	return append(facts, r.virtual()...)
}

// virtual returns the virtual times of the run, if it has any: seconds over simulated links, or
// else gradients of an asynchronous run.
func (r *run) virtual() []fact {
	total := r.final("virtual_time")
	if !(total > 0) {
		return nil
	}
	unit, note := "", "in gradients of a mean agent"
	if links := r.summary.text("links"); links != "" {
		unit, note = " s", "under simulated links of "+links
	}
	facts := []fact{{"Virtual time", units.Significant(total, 4) + unit, note}}
	for _, share := range []string{"50", "80", "90", "95"} {
		if v := r.summary.number("time_to_" + share); finite(v) {
			facts = append(facts, fact{"Virtual time to " + share + " %", units.Significant(v, 4) + unit,
				"of the best test accuracy of the mean model"})
		}
	}
	return facts
}

// iterations returns how many iterations the run made.
func (r *run) iterations() float64 {
	if v := r.summary.number("iterations"); finite(v) {
		return v
	}
	return r.metrics.last("iteration")
}

// nextEvaluation returns the iteration of the next evaluation of a run that has not ended.
func (r *run) nextEvaluation() (at float64, ok bool) {
	all, points := r.config.number("iterations"), r.config.number("eval_points")
	now := r.metrics.last("iteration")
	if r.summary != nil || r.config.number("eval_epochs") > 0 || !(points > 0) || !(now < all) {
		return 0, false
	}
	for k := math.Floor(now * points / all); at <= now; k++ {
		at = math.Round(k * all / points)
	}
	return at, true
}

func epochs(v float64) string {
	if !finite(v) {
		return ""
	}
	return "epoch " + units.Significant(v, 4)
}

// mode is one accounting of the sent bits.
type mode struct{ own, accounting, name, note string }

var modes = []mode{
	{"bits_shared_seed", accountings[0], "shared seed",
		"values only: both ends of an edge derive the mask from a common seed, so no index travels"},
	{"bits_packed", accountings[1], "packed",
		"values, and explicit indices of ⌈log₂ d⌉ bit each, which one end of an edge sends"},
	{"bits_reference", accountings[2], "reference",
		"values, and 64-bit indices, as in published curves: the figure to compare with those"},
}

// key returns the column with the bits of a mode. If bits_total is counted this way it is that
// column, which is the only one in old runs.
func (m mode) key(r *run) string {
	if m.accounting == r.accounting() {
		return "bits_total"
	}
	return m.own
}

// bits returns the table of the sent data.
func (r *run) bits() []fact {
	var facts []fact
	for _, m := range modes {
		facts = append(facts, fact{"Bits, " + m.name, units.SI(r.final(m.key(r)), "bit"), m.note})
	}
	return append(facts,
		fact{"Bits of the busiest agent", units.SI(r.metrics.last("bits_agent_max"), "bit"),
			r.accounting() + " accounting"},
		fact{"Overhead", units.SI(r.metrics.last("overhead_bits"), "bit"),
			"handshakes, seeds and counters; in none of the figures above"},
		fact{"On the wire", units.SI(r.final("wire_bytes"), "B"),
			"bytes that the transport carried, with its framing"})
}

// milestone says when the mean model reached an accuracy, interpolated linearly between the
// evaluation before and the first one that reached it.
type milestone struct {
	Level, Iteration, Wall string
	Bits                   []string // one for each mode
	Apart                  string   // iterations between the two evaluations; a dash if the first one reached it
}

// levels lists the accuracies of milestones; a report has the highest maxLevels that were reached.
var levels = []float64{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99}

const maxLevels = 6

// milestones returns when accuracies were reached. It is empty if none was.
func (r *run) milestones() []milestone {
	m := r.metrics
	var all []milestone
	for _, level := range levels {
		row := m.reach("test_acc_avg", level)
		if row < 0 {
			continue
		}
		share, apart := 1.0, units.Dash
		if row > 0 {
			acc, it := m.column["test_acc_avg"], m.column["iteration"]
			apart = grouped(it[row] - it[row-1])
			if finite(acc[row-1]) {
				share = (level - acc[row-1]) / (acc[row] - acc[row-1])
			}
		}
		at := func(key string) float64 {
			c := m.column[key]
			if row == 0 || share == 1 {
				return c[row]
			}
			return c[row-1] + share*(c[row]-c[row-1])
		}
		s := milestone{Level: units.Percent(level), Iteration: grouped(math.Round(at("iteration"))),
			Wall: units.Duration(at("wall_s")), Apart: apart}
		for _, k := range modes {
			s.Bits = append(s.Bits, units.SI(at(k.key(r)), "bit"))
		}
		all = append(all, s)
	}
	return all[max(0, len(all)-maxLevels):]
}

// environment returns the program version, the machine and the device of the run.
func (r *run) environment() []fact {
	var facts []fact
	for _, k := range []fact{{"Version", "version", ""}, {"Machine", "machine", ""}, {"Device", "device", ""},
		{"Seed", "seed", ""}} {
		v := cmp.Or(first(k.Value, r.summary, r.config), units.Dash)
		facts = append(facts, fact{k.Name, v, ""})
	}
	return facts
}

// splitNote summarizes the data split: the number of examples and the range of the agents' shares.
func (s *shards) splitNote() string {
	total, least, largest := 0, math.MaxInt, 0
	for _, row := range s.Agents {
		sum := 0
		for _, n := range row {
			sum += n
		}
		total += sum
		least, largest = min(least, sum), max(largest, sum)
	}
	return fmt.Sprintf("%s examples over %d agents, %s each. A cell's strength is its share of the largest count.",
		grouped(float64(total)), len(s.Agents), between(least, largest))
}

func (s *shards) graphNote() string {
	least, largest := math.MaxInt, 0
	for _, d := range s.degrees() {
		least, largest = min(least, d), max(largest, d)
	}
	return fmt.Sprintf("%d agents, %d edges, each agent has %s neighbours.", len(s.Agents), len(s.Edges),
		between(least, largest))
}

// between formats a range of counts, or the count if all are equal.
func between(least, largest int) string {
	if least == largest {
		return grouped(float64(least))
	}
	return grouped(float64(least)) + " to " + grouped(float64(largest))
}
