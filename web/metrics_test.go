package web

import (
	"math"
	"strings"
	"testing"
)

func TestParseMetrics(t *testing.T) {
	m, err := parseMetrics("m", strings.NewReader(`{"iteration":0,"test_acc_avg":0.1,"unknown":"x"}

{"iteration":10,"test_acc_avg":null,"lr":0.5}
{"iteration":20,"test_acc_avg":0.7}`))
	if err != nil {
		t.Fatal(err)
	}
	if m.rows != 3 {
		t.Fatalf("%d rows, want 3", m.rows)
	}
	for _, k := range metricKeys {
		if len(m.column[k]) != 3 {
			t.Errorf("column %s has %d values, want 3", k, len(m.column[k]))
		}
	}
	acc := m.column["test_acc_avg"]
	if acc[0] != 0.1 || !math.IsNaN(acc[1]) || acc[2] != 0.7 || m.column["lr"][1] != 0.5 {
		t.Errorf("accuracies %v, rates %v", acc, m.column["lr"])
	}
	if m.best("test_acc_avg") != 0.7 || m.last("test_acc_avg") != 0.7 || m.reach("test_acc_avg", 0.5) != 2 ||
		m.reach("test_acc_avg", 0.8) != -1 {
		t.Error("best, last or reach is wrong")
	}
	if !math.IsNaN(m.best("eta")) || !math.IsNaN(m.last("eta")) || !math.IsNaN(m.last("no such key")) {
		t.Error("an unmeasured value is not NaN")
	}
}

// A run that resumes from iteration 20 evaluates 20 and 30 again; the later lines count.
func TestParseMetricsResumed(t *testing.T) {
	m, err := parseMetrics("m", strings.NewReader(`{"iteration":10,"lr":1}
{"iteration":20,"lr":2}
{"iteration":30,"lr":3}
{"iteration":40,"lr":4}
{"iteration":20,"lr":5}
{"iteration":30,"lr":6}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []float64{1, 5, 6}
	if got := m.column["lr"]; m.rows != 3 || len(got) != 3 || got[0] != want[0] || got[1] != want[1] ||
		got[2] != want[2] {
		t.Errorf("%d rows %v, want %v", m.rows, got, want)
	}
}

func TestParseMetricsErrors(t *testing.T) {
	for text, want := range map[string]string{
		`{"iteration":1}` + "\n{":     "runs/m:2: ",
		`[]`:                          "want a JSON object",
		`null`:                        "iteration is <nil>",
		`{"iteration":1} {}`:          "JSON object",
		`{"lr":1}`:                    "iteration is <nil>",
		`{"iteration":-1}`:            "iteration is -1",
		`{"iteration":1,"lr":"fast"}`: "lr is fast, want a number or null",
		`{"iteration":1,"lr":1e999}`:  "JSON object",
		strings.Repeat("x", 100):      `xxx"...`,
		"\n\n" + strings.Repeat(" ", maxLine+1) + "{}": "runs/m:3: ",
	} {
		_, err := parseMetrics("runs/m", strings.NewReader(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: error %v, want %q", text, err, want)
		}
	}
	if _, err := readMetrics(t.TempDir()); err == nil {
		t.Error("no error for a folder in place of the file")
	}
}
