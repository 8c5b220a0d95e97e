package bench

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"fspda/train"
)

// textRun is a run of a text whose perplexity falls.
func textRun(name string, perplexities ...float64) *Outcome {
	c := train.Default()
	c.Algo = name
	o := &Outcome{Job: Job{Name: name, Title: name, Config: c}, Status: train.Finished}
	for i, p := range perplexities {
		var r train.Row
		r.Iteration, r.BitsSharedSeed, r.Perplexity = 10*i, uint64(1e6*i), train.Num(p)
		r.TestLossAvg, r.TestLossMean = train.Num(math.Log(p)), train.Num(math.Log(p)+0.1)
		o.Rows = append(o.Rows, r)
	}
	return o
}

// Runs of texts are compared by their losses and by the bits to perplexities.
func TestTableOfText(t *testing.T) {
	table := &Table{Accounting: "shared-seed", Outcomes: []*Outcome{textRun("a", 65, 40, 10), textRun("b", 65, 50, 20)}}
	var md strings.Builder
	if err := table.WriteMarkdown(&md); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"test loss: mean of agents | mean model | perplexity |", "| 2.403 | 2.303 | 10 |",
		"to reach this perplexity, mean model / mean of agents",
		"| perplexity 25 | perplexity 20 | perplexity 15 | perplexity 12.5 | perplexity 10 |"} {
		if !strings.Contains(md.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, &md)
		}
	}
	if strings.Contains(md.String(), "accuracy") {
		t.Errorf("the table of a text has accuracies:\n%s", &md)
	}
	// b comes to a loss of log 20 at 2 Mbit; a between 40 and 10, where the loss is interpolated
	table.Levels = []float64{20}
	goal, level := table.goal(), table.milestones()[0]
	for k, want := range []float64{1e6 + 1e6*math.Log(2)/math.Log(4), 2e6} {
		if got := table.reach(table.Outcomes[k], level, goal.scores[0]).At; math.Abs(got-want) > 1e-3 {
			t.Errorf("run %d reached a perplexity of 20 after %g bits, want %g", k, got, want)
		}
	}
	names := strings.Join(table.names(), " ")
	if !strings.Contains(names, " perplexity ") || !strings.Contains(names, "bits_to_perplexity_20_mean_model") {
		t.Errorf("columns %s", names)
	}
}

func TestPerplexities(t *testing.T) {
	for want, k := range map[string][2]float64{
		"[80 60 50 40 30]": {29, 50000}, "[8 6 5 4]": {4, 10}, "[12.5]": {11, 14}, "[]": {math.Inf(1), 0},
		"[2 1.5 1.25]": {1, 2.2},
	} {
		got := []string{}
		for _, m := range perplexities(k[0], k[1]) {
			got = append(got, strings.TrimPrefix(m.label, "perplexity "))
		}
		if fmt.Sprint(got) != want {
			t.Errorf("from %g to %g: %v, want %s", k[1], k[0], got, want)
		}
	}
}

// Texts of a table mean nothing to LaTeX but themselves.
func TestWriteLaTeX(t *testing.T) {
	o := textRun("a_b & 5 % {x} $\\", 65, 20)
	o.Rows[0].Perplexity, o.Rows[1].Perplexity = train.Num(math.NaN()), train.Num(math.NaN())
	o.Rows[1].TestAccMin, o.Rows[1].TestAccMean, o.Rows[1].TestAccAvg = 0.5, 0.75, 0.95
	table := &Table{Accounting: "shared-seed", Levels: []float64{0.9}, Outcomes: []*Outcome{o}}
	var b strings.Builder
	if err := table.WriteLaTeX(&b); err != nil {
		t.Fatal(err)
	}
	want := `% needs \usepackage{booktabs}
\begin{tabular}{@{}lrrrr@{}}
\toprule
run & accuracy: worst agent & mean of agents & mean model & bits sent \\
\midrule
a\_b \& 5 \% \{x\} \$\textbackslash{} & 50.00 \% & 75.00 \% & 95.00 \% & 1 Mbit \\
\bottomrule
\end{tabular}

% Bits (shared-seed accounting) to reach this test accuracy, mean model / worst agent: interpolated ` +
		`between the evaluation before and the first that reached it, which are 1 Mbit apart.
\begin{tabular}{@{}lr@{}}
\toprule
run & 90 \% \\
\midrule
a\_b \& 5 \% \{x\} \$\textbackslash{} & 947 kbit / -- \\
\bottomrule
\end{tabular}
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &b, want)
	}
}
