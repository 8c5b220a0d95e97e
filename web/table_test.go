package web

import (
	"slices"
	"strings"
	"testing"

	"fspda/internal/units"
)

// The table behind a chart has the numbers of the curves; of many evaluations it has some, with the
// first and the last.
func TestChartTable(t *testing.T) {
	t.Parallel()
	m := parsed(t, jsonl(t, evaluations(301)))
	table := charts[1].table(m, axes)
	head := "iteration|bits|mean model|worst agent|mean of agents|best agent"
	if got := strings.Join(table.Head(), "|"); got != head {
		t.Errorf("head %s", got)
	}
	body := table.Body()
	if len(body) != maxTableRows || body[0][0] != "0" || body[maxTableRows-1][0] != grouped(60000) ||
		!strings.HasPrefix(table.Note, "25 of 301 evaluations") {
		t.Errorf("%d lines, %v to %v, note %q", len(body), body[0], body[len(body)-1], table.Note)
	}
	want := []string{grouped(60000), units.SI(m.last("bits_total"), "bit"), units.Percent(m.last("test_acc_avg")),
		units.Percent(m.last("test_acc_min")), units.Percent(m.last("test_acc_mean")),
		units.Percent(m.last("test_acc_max"))}
	if !slices.Equal(body[maxTableRows-1], want) {
		t.Errorf("last line %v, want %v", body[maxTableRows-1], want)
	}
	if few := charts[0].table(parsed(t, jsonl(t, evaluations(2))), axes); len(few.Body()) != 2 || few.Note != "" {
		t.Errorf("%v", few)
	}
}

func TestShardTables(t *testing.T) {
	t.Parallel()
	s := &shards{Classes: 2, Agents: [][]int{{1, 2000}, {0, 3}, {4, 5}}, Edges: [][]int{{0, 1}, {1, 2}}}
	if got := s.splitTable().Lines; !slices.Equal(got[0], []string{"agent", "class 0", "class 1"}) ||
		!slices.Equal(got[1], []string{"0", "1", grouped(2000)}) {
		t.Errorf("%v", got)
	}
	if got := s.graphTable().Lines; !slices.Equal(got[2], []string{"1", "2", "0, 2"}) {
		t.Errorf("%v", got)
	}
	many := &shards{Classes: 40, Agents: make([][]int, 50)}
	for i := range many.Agents {
		many.Agents[i] = make([]int, 40)
		many.Edges = append(many.Edges, []int{0, i})
	}
	if got := many.splitTable(); len(got.Lines) != maxTableCells+1 || len(got.Lines[1]) != maxTableCells+1 ||
		got.Note != "30 of 50 agents, 30 of 40 classes; shards.json has all." {
		t.Errorf("%d lines, %q", len(got.Lines), got.Note)
	}
	if got := many.graphTable(); !strings.HasSuffix(got.Lines[1][2], ", …") || got.Lines[1][1] != "51" {
		t.Errorf("%v", got.Lines[1])
	}
}

// A run that goes on says when it is evaluated next, and one that has ended does not.
func TestNextEvaluation(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		now, want float64
		ended     bool
	}{{0, 33, false}, {33, 67, false}, {67, 100, false}, {100, 0, false}, {33, 0, true}} {
		r := &run{config: settings{"iterations": uint64(100), "eval_points": uint64(3)},
			metrics: parsed(t, line(t, map[string]any{"iteration": c.now}))}
		if c.ended {
			r.summary = settings{"status": "stopped"}
		}
		if got, ok := r.nextEvaluation(); got != c.want || ok != (c.want > 0) {
			t.Errorf("after %g of 100, ended %v: %g", c.now, c.ended, got)
		}
	}
}

// An axis is linear or logarithmic whatever the values are: as a run goes on, it does not change.
func TestScalesAreFixed(t *testing.T) {
	t.Parallel()
	flat := parsed(t, `{"iteration":0,"train_loss_avg":2.3}`+"\n"+`{"iteration":9,"train_loss_avg":2.2}`)
	steep := parsed(t, `{"iteration":0,"train_loss_avg":2.3}`+"\n"+`{"iteration":9,"train_loss_avg":0.0001}`)
	for _, m := range []*metrics{flat, steep} {
		p := &plot{drawing: &drawing{}, chart: &charts[0], m: m, xAxis: &axes[0], xs: m.column["iteration"]}
		if why := p.chooseAxes(); why != "" || !p.y.log || p.x.log {
			t.Errorf("%q: the y axis is logarithmic: %v, the x axis: %v", why, p.y.log, p.x.log)
		}
	}
}
