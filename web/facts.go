package web

import (
	"fmt"
	"math"
	"strings"
)

// run is all that is known of a run.
type run struct {
	name    string // of its folder
	metrics *metrics
	summary settings // nil if the run has not written it
	config  settings // nil if there is none
	yaml    string   // config.yaml as it stands
	shards  *shards  // nil if there is none
}

// final returns a number as it stood at the end: from the summary, else from the last evaluation.
func (r *run) final(key string) float64 {
	if _, ok := r.summary[key]; ok { // null means that it is not defined, which an older number must not hide
		return r.summary.number(key)
	}
	return r.metrics.last(key)
}

// setting returns a setting as text: from the config, else from the summary.
func (r *run) setting(key string) string { return first(key, r.config, r.summary) }

// accounting is how bits_total and bits_agent_max count.
func (r *run) accounting() string { return accounting(r.config, r.summary) }

// fact is a value with its name and, where it needs one, an explanation.
type fact struct{ Name, Value, Note string }

// status returns how the run ended, and whether that is good, bad or neither.
func (r *run) status() (text, class string) {
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

// sentence says what was run. Settings that are not known are left out.
func (r *run) sentence() string {
	var b strings.Builder
	part := func(format, key string) {
		if v := r.setting(key); v != "" {
			fmt.Fprintf(&b, format, v)
		}
	}
	if r.setting("algo") == "" {
		b.WriteString("An unnamed algorithm trained")
	}
	part("%s trained", "algo")
	switch r.setting("model") {
	case "":
		b.WriteString(" a model")
	default:
		part(" the model %s", "model")
	}
	part(" on %s", "data")
	part(" with %s agents", "agents")
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

// headline is the handful of numbers on top of the page.
func (r *run) headline() []fact {
	return []fact{
		{"Test accuracy", percent(r.final("test_acc_avg")), "of the mean model"},
		{"Worst agent", percent(r.final("test_acc_min")), "test accuracy"},
		{"Training loss", significant(r.final("train_loss_worst"), 4), "of the worst agent"},
		{"Consensus error", significant(r.final("consensus"), 3), "sum of squared distances to the mean model"},
		{"Sent", si(r.final("bits_total"), "bit"), "by all agents, " + r.accounting() + " accounting"},
		{"Wall time", duration(r.final("wall_s")), speed(r.final("iterations_per_s"))},
	}
}

func speed(v float64) string {
	if !finite(v) {
		return ""
	}
	return significant(v, 3) + " iterations/s"
}

// results is the table of everything measured at the end.
func (r *run) results() []fact {
	m := r.metrics
	best := m.best("test_acc_avg")
	when := ""
	if row := m.reach("test_acc_avg", best); row >= 0 {
		when = "first at iteration " + grouped(m.column["iteration"][row])
	}
	facts := []fact{
		{"Test accuracy, mean model", percent(r.final("test_acc_avg")), "the average of all agents' parameters"},
		{"Best test accuracy, mean model", percent(best), when},
		{"Test accuracy, mean of agents", percent(r.final("test_acc_mean")), ""},
		{"Test accuracy, worst agent", percent(r.final("test_acc_min")), ""},
		{"Test accuracy, best agent", percent(m.last("test_acc_max")), ""},
		{"Test loss, mean model", significant(m.last("test_loss_avg"), 4), ""},
		{"Training loss, worst agent", significant(r.final("train_loss_worst"), 4),
			"over the whole training set, with the L2 term"},
		{"Training loss, mean model", significant(r.final("train_loss_avg"), 4), ""},
		{"Squared gradient norm, worst agent", significant(r.final("grad_sq_worst"), 4), "of the whole training loss"},
		{"Squared gradient norm, mean model", significant(m.last("grad_sq_avg"), 4), ""},
		{"Consensus error", significant(r.final("consensus"), 4),
			"sum over agents of the squared distance to the mean model"},
		{"Consensus error, farthest agent", significant(m.last("consensus_max"), 4), ""},
		{"Norm of the sum of duals", significant(r.final("dual_sum"), 3),
			"zero but for rounding; only for algorithms with duals"},
		{"Iterations", grouped(r.iterations()), epochs(m.last("epoch"))},
		{"Gradients computed", grouped(m.last("grads_total")), "by all agents"},
		{"Parameters of one agent", grouped(r.final("dim")), ""},
		{"Wall time", duration(r.final("wall_s")), speed(r.final("iterations_per_s"))},
	}
	return append(facts, r.virtual()...)
}

// virtual is what the run took in virtual time, where it has any: seconds under simulated links,
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
	facts := []fact{{"Virtual time", significant(total, 4) + unit, note}}
	for _, share := range []string{"50", "80", "90", "95"} {
		if v := r.summary.number("time_to_" + share); finite(v) {
			facts = append(facts, fact{"Virtual time to " + share + " %", significant(v, 4) + unit,
				"of the best test accuracy of the mean model"})
		}
	}
	return facts
}

// iterations is how many the run did.
func (r *run) iterations() float64 {
	if v := r.summary.number("iterations"); finite(v) {
		return v
	}
	return r.metrics.last("iteration")
}

func epochs(v float64) string {
	if !finite(v) {
		return ""
	}
	return "epoch " + significant(v, 4)
}

// mode is one way to count the bits that were sent.
type mode struct{ own, accounting, name, note string }

var modes = []mode{
	{"bits_shared_seed", accountings[0], "shared seed",
		"values only: both ends of an edge derive the mask from a common seed, so no index travels"},
	{"bits_packed", accountings[1], "packed",
		"values, and explicit indices of ⌈log₂ d⌉ bit each, which one end of an edge sends"},
	{"bits_reference", accountings[2], "reference",
		"values, and 64-bit indices, as in published curves: the figure to compare with those"},
}

// key returns where the bits of a mode stand: bits_total holds them too if it counts so, and older
// runs have no other key.
func (m mode) key(r *run) string {
	if m.accounting == r.accounting() {
		return "bits_total"
	}
	return m.own
}

// bits is the table of what was sent.
func (r *run) bits() []fact {
	var facts []fact
	for _, m := range modes {
		facts = append(facts, fact{"Bits, " + m.name, si(r.final(m.key(r)), "bit"), m.note})
	}
	return append(facts,
		fact{"Bits of the busiest agent", si(r.metrics.last("bits_agent_max"), "bit"), r.accounting() + " accounting"},
		fact{"Overhead", si(r.metrics.last("overhead_bits"), "bit"),
			"handshakes, seeds and counters; in none of the figures above"},
		fact{"On the wire", si(r.final("wire_bytes"), "B"),
			"bytes that the transport really carried, with its framing"})
}

// milestone is when the mean model reached a share of its best test accuracy.
type milestone struct {
	Share, Level, Iteration, Wall string
	Bits                          []string // one for each of modes
}

// milestones says what 80, 90 and 95 % of the best accuracy cost. It is empty if no accuracy was
// measured, or never above zero.
func (r *run) milestones() []milestone {
	m := r.metrics
	best := m.best("test_acc_avg")
	var all []milestone
	for _, share := range []float64{0.80, 0.90, 0.95} {
		row := m.reach("test_acc_avg", share*best*(1-1e-12)) // 0.72 is 80 % of 0.9, though not in binary
		if row < 0 || best <= 0 {
			continue
		}
		s := milestone{fmt.Sprintf("%.0f %%", 100*share), percent(share * best), grouped(m.column["iteration"][row]),
			duration(m.column["wall_s"][row]), nil}
		for _, k := range modes {
			s.Bits = append(s.Bits, si(m.column[k.key(r)][row], "bit"))
		}
		all = append(all, s)
	}
	return all
}

// environment is where and with what the run was made.
func (r *run) environment() []fact {
	var facts []fact
	for _, k := range []fact{{"Version", "version", ""}, {"Machine", "machine", ""}, {"Device", "device", ""},
		{"Seed", "seed", ""}} {
		v := first(k.Value, r.summary, r.config)
		if v == "" {
			v = dash
		}
		facts = append(facts, fact{k.Name, v, ""})
	}
	return facts
}

// splitNote describes the data split in numbers: how many examples there are and how unequal the
// agents' shares are.
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

// graphNote describes the graph in numbers.
func (s *shards) graphNote() string {
	least, largest := math.MaxInt, 0
	for _, d := range s.degrees() {
		least, largest = min(least, d), max(largest, d)
	}
	return fmt.Sprintf("%d agents, %d edges, each agent has %s neighbours.", len(s.Agents), len(s.Edges),
		between(least, largest))
}

// between writes a range of counts, or the count if all are equal.
func between(least, largest int) string {
	if least == largest {
		return grouped(float64(least))
	}
	return grouped(float64(least)) + " to " + grouped(float64(largest))
}
