package web

import (
	"strings"
	"testing"
)

func TestMilestones(t *testing.T) {
	r := &run{metrics: parsed(t, `{"iteration":0,"test_acc_avg":0.1,"bits_total":0,"wall_s":0}
{"iteration":100,"test_acc_avg":0.72,"bits_total":1e6,"bits_packed":2e6,"bits_reference":3e6,"wall_s":5}
{"iteration":200,"test_acc_avg":0.83,"bits_total":2e6,"bits_packed":4e6,"bits_reference":6e6,"wall_s":10}
{"iteration":300,"test_acc_avg":0.9,"bits_total":3e6,"wall_s":15}
{"iteration":400,"test_acc_avg":0.5,"bits_total":4e6,"wall_s":20}
`)}
	want := []string{ // of eight that were reached
		"40.00 % 48 2.42 s 484 kbit – – 100",
		"50.00 % 65 3.23 s 645 kbit – – 100",
		"60.00 % 81 4.03 s 806 kbit – – 100",
		"70.00 % 97 4.84 s 968 kbit – – 100",
		"80.00 % 173 8.64 s 1.73 Mbit 3.45 Mbit 5.18 Mbit 100",
		"90.00 % 300 15 s 3 Mbit – – 100",
	}
	got := r.milestones()
	if len(got) != len(want) {
		t.Fatalf("%d milestones, want %d", len(got), len(want))
	}
	for i, m := range got {
		words := append([]string{m.Level, m.Iteration, m.Wall}, append(m.Bits, m.Apart)...)
		if s := strings.Join(words, " "); s != want[i] {
			t.Errorf("milestone %d: %s, want %s", i, s, want[i])
		}
	}
	if all := (&run{metrics: parsed(t, `{"iteration":0,"test_acc_avg":0}`)}).milestones(); len(all) != 0 {
		t.Errorf("milestones of an accuracy of 0: %v", all)
	}
}

// bits_total has the accounting of the configuration. Each mode has its own column too, except in
// old runs.
func TestAccounting(t *testing.T) {
	m := parsed(
		t,
		`{"iteration":1,"test_acc_avg":1,"bits_total":2e6,"bits_shared_seed":1e6,"bits_packed":2e6,"bits_reference":3e6}`,
	)
	r := &run{metrics: m, config: settings{"accounting": "packed"}}
	if got := strings.Join(r.milestones()[0].Bits, " "); got != "1 Mbit 2 Mbit 3 Mbit" {
		t.Error(got)
	}
	facts := r.bits()
	if facts[0].Value != "1 Mbit" || facts[1].Value != "2 Mbit" || facts[3].Note != "packed accounting" ||
		r.headline()[4].Note != "by all agents, packed accounting" {
		t.Errorf("%v", facts)
	}
	old := &run{metrics: parsed(t, `{"iteration":1,"test_acc_avg":1,"bits_total":5e6}`)}
	if got := strings.Join(old.milestones()[0].Bits, " "); got != "5 Mbit – –" {
		t.Error(got)
	}
	if a := accounting(settings{"accounting": "<unknown>"}); a != "shared-seed" {
		t.Error(a)
	}
	axes := xAxesOf("packed")
	d := charts[1].draw(m, &axes[1])
	if titles := find(d, "v-label"); titles[0].text != "bits sent by all agents, packed accounting" {
		t.Errorf("axis %q", titles[0].text)
	}
}

// The summary takes precedence over the metrics, even if its value is null.
func TestFinal(t *testing.T) {
	r := &run{metrics: parsed(t, `{"iteration":7,"consensus":1,"test_acc_avg":0.5,"wall_s":3}`),
		summary: settings{"consensus": nil, "test_acc_avg": 0.75}}
	if v := r.final("test_acc_avg"); v != 0.75 {
		t.Errorf("accuracy %g", v)
	}
	if finite(r.final("consensus")) || r.final("wall_s") != 3 || r.iterations() != 7 {
		t.Error("final or iterations is wrong")
	}
}

func TestNotes(t *testing.T) {
	s := &shards{Classes: 2, Agents: [][]int{{10, 5}, {0, 3}, {1, 1}}, Edges: [][]int{{0, 1}, {1, 2}}}
	if got := s.splitNote(); !strings.HasPrefix(got, "20 examples over 3 agents, 2 to 15 each.") {
		t.Error(got)
	}
	if got := s.graphNote(); got != "3 agents, 2 edges, each agent has 1 to 2 neighbours." {
		t.Error(got)
	}
}

// virtual is empty for a run without virtual time.
func TestVirtualTime(t *testing.T) {
	row := `{"iteration":7,"test_acc_avg":0.5,"virtual_time":12.5}`
	r := &run{metrics: parsed(t, row), summary: settings{"links": "50 ms", "time_to_50": 3.25, "time_to_90": 9.5}}
	facts := r.virtual()
	if len(facts) != 3 || facts[0].Value != "12.5 s" || !strings.HasSuffix(facts[0].Note, "50 ms") ||
		facts[1].Value != "3.25 s" || facts[2].Name != "Virtual time to 90 %" {
		t.Errorf("%v", facts)
	}
	if got := (&run{metrics: parsed(t, row)}).virtual(); len(got) != 1 || !strings.Contains(got[0].Note, "gradients") {
		t.Errorf("without links: %v", got)
	}
	zero := parsed(t, `{"iteration":7,"test_acc_avg":0.5,"virtual_time":0}`)
	if got := (&run{metrics: zero}).virtual(); got != nil {
		t.Errorf("without virtual time: %v", got)
	}
	timed := &Comparison{Curves: []Curve{{Name: "a", Columns: zero.column}}}
	if timed.has("virtual_time") {
		t.Error("zeros count as virtual times")
	}
	timed.Curves = append(timed.Curves, Curve{Name: "b", Columns: parsed(t, row).column})
	if !strings.Contains(strings.Join(timed.data().Xs, " "), "virtual_time") {
		t.Errorf("axes %v", timed.data().Xs)
	}
}

// A run that goes on is said to train, numbers are grouped, and numbers of the worst agent say among
// how many agents it is.
func TestSentence(t *testing.T) {
	r := &run{config: settings{"algo": "dsgd", "agents": uint64(1000), "iterations": uint64(1000000),
		"seed": uint64(12345), "eval_agents": uint64(4)}, metrics: parsed(t, `{"iteration":1,"test_acc_min":0.1}`)}
	const rest = " a model with 1\u2009000 agents; 1\u2009000\u2009000 iterations; seed 12345."
	if got, want := r.sentence(true), "dsgd trains"+rest; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := r.sentence(false), "dsgd trained"+rest; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := r.headline()[1].Note, "test accuracy; of 4 agents looked at"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	r.config["eval_agents"] = uint64(0)
	if got, want := r.headline()[1].Note, "test accuracy"; got != want {
		t.Errorf("of all agents: %s, want %s", got, want)
	}
}
