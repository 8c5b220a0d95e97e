package web

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// report writes the report of a folder and returns it.
func report(t testing.TB, dir string) string {
	t.Helper()
	if err := WriteReport(dir); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "report.html"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestWriteReport(t *testing.T) {
	for name, make := range runs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := make(t)
			page := report(t, dir)
			keep(t, dir, name)
			if !strings.HasSuffix(page, "</html>\n") {
				t.Error("the page is truncated")
			}
			if strings.Contains(page, "NaN") || strings.Contains(page, "Inf") {
				t.Error("the page contains NaN or Inf")
			}
			pictures := regexp.MustCompile(`(?s)<svg .*?</svg>`).FindAllString(page, -1)
			if len(pictures) < len(charts)*len(axes) {
				t.Errorf("%d pictures, want at least %d", len(pictures), len(charts)*len(axes))
			}
			for _, p := range pictures {
				checkSVG(t, name, []byte(p))
			}
		})
	}
}

func TestWriteReportSays(t *testing.T) {
	dir := runs["good"](t)
	page := report(t, dir)
	for _, want := range []string{
		"<title>mnist-sa – fspda run</title>", `<span class="badge good">finished</span>`,
		"fspda-sa trained the model mlp on mnist with 10 agents on the graph er10-published, edge process one-edge, " +
			"mask randk of density 0.1; data split: {&#34;alpha&#34;:0.3,&#34;kind&#34;:&#34;dirichlet&#34;}; batch " +
			"64; 20\u2009000 iterations; seed 1; device cpu.",
		"96.89 %", "94.88 %", "10.2 Gbit", "12.9 Gbit", "20.4 Gbit", "1.36 GB", "57.1 s", "79\u2009510",
		"101 evaluations",
		"fspda train --algo fspda-sa --agents 10", "weight_decay: 0.0001", "4 cores, x86-64", "v0.1.0",
		"shared-seed accounting",
		"Examples of each of 10 classes at each of 10 agents.", "Graph of 10 agents",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(page, "There is no ") {
		t.Error("the page reports an existing file as missing")
	}
	again := report(t, dir)
	if again != page {
		t.Error("a second report of the same run differs")
	}
}

// The page is self-contained: no URL except the XML namespace of SVG, no script, no import.
func TestWriteReportSelfContained(t *testing.T) {
	page := strings.ReplaceAll(report(t, runs["good"](t)), `href="data:,"`, "")
	for _, no := range []string{"http:", "https:", "//", "<script", "src=", "href=", "@import", "url("} {
		if strings.Contains(page, no) {
			t.Errorf("the page contains %q", no)
		}
	}
}

func TestWriteReportMissing(t *testing.T) {
	page := report(t, runs["bare"](t))
	for _, want := range []string{
		"There is no config.yaml in", "There is no summary.json in", "There is no shards.json in", "no summary yet",
		"An unnamed algorithm trained a model.", "The command was not recorded.",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if page := report(t, runs["empty"](t)); !strings.Contains(page, "has not evaluated yet") ||
		!strings.Contains(page, "No test accuracy of 10 % or more") {
		t.Error("the page of an empty run does not say so")
	}
	if page := report(t, runs["diverged"](t)); !strings.Contains(page, `badge bad">diverged`) ||
		!strings.Contains(page, "The run was stopped because") {
		t.Error("the page of a diverged run does not say so")
	}
}

// Texts from files are escaped.
func TestWriteReportHostile(t *testing.T) {
	const evil = `</pre></script><script>alert(1)</script><img src=x onerror="alert('2')">` + "\x01\xff" +
		`{{.Name}}]]>&amp;`
	quoted := `"` + strings.NewReplacer(`"`, `\"`, "\x01", `\u0001`).Replace(evil) + `"`
	yamlText := "# " + strings.ReplaceAll(evil, "\x01", "") + "\nalgo: '" + strings.NewReplacer("'", "''", "\x01", "",
		"\xff", "").Replace(evil) + "'\n"
	summary := `{"status":` + quoted + `,"command":` + quoted + `,"machine":` + quoted + `,"version":{"a":[` + quoted +
		`]},"model":` + quoted + `}`
	base := folder(t, "metrics.jsonl", jsonl(t, evaluations(3)), "config.yaml", yamlText, "summary.json", summary,
		"shards.json", testShards(t, 3, 3))
	dir := filepath.Join(filepath.Dir(base), `<script>alert('name')<\script>"`)
	if err := os.Rename(base, dir); err != nil {
		t.Fatal(err)
	}
	page := report(t, dir)
	for _, no := range []string{"<script", "<img", "</script", "onerror=\"", "\x01", "\xff"} {
		if strings.Contains(page, no) {
			t.Errorf("the page contains %q", no)
		}
	}
	if n := strings.Count(page, "&lt;script&gt;alert(1)"); n < 6 {
		t.Errorf("the escaped text appears %d times, want at least 6", n)
	}
	keep(t, dir, "hostile")
}

func TestWriteReportErrors(t *testing.T) {
	good := jsonl(t, evaluations(2))
	for name, c := range map[string]struct {
		files []string
		want  []string
	}{
		"no metrics": {nil, []string{"metrics.jsonl", "not the folder of a run"}},
		"cut line": {[]string{"metrics.jsonl", good + `{"iteration":600,"trai`},
			[]string{"metrics.jsonl:3:", "cut short"}},
		"config":      {[]string{"metrics.jsonl", good, "config.yaml", "a: [1"}, []string{"config.yaml"}},
		"config list": {[]string{"metrics.jsonl", good, "config.yaml", "- 1\n- 2\n"}, []string{"config.yaml"}},
		"summary": {[]string{"metrics.jsonl", good, "summary.json", "[]"},
			[]string{"summary.json", "JSON object"}},
		"summary number": {[]string{"metrics.jsonl", good, "summary.json", `{"wall_s":"long"}`},
			[]string{"summary.json", "wall_s is long"}},
		"shards": {[]string{"metrics.jsonl", good, "shards.json", `{"classes":`}, []string{"shards.json"}},
		"shards tail": {[]string{"metrics.jsonl", good, "shards.json", `{"classes":0} {}`},
			[]string{"shards.json", "follows"}},
		"shards row": {[]string{"metrics.jsonl", good, "shards.json", `{"classes":3,"agents":[[1,2]]}`},
			[]string{"agent 0 has counts of 2 classes, want 3"}},
		"shards negative": {[]string{"metrics.jsonl", good, "shards.json", `{"classes":1,"agents":[[-1]]}`},
			[]string{"holds -1 examples"}},
		"shards classes": {[]string{"metrics.jsonl", good, "shards.json", `{"classes":-1}`},
			[]string{"classes is -1"}},
		"shards edge": {[]string{"metrics.jsonl", good, "shards.json",
			`{"classes":1,"agents":[[1],[1]],"edges":[[0,2]]}`}, []string{"edge 0 is [0 2], want agents from 0 to 1"}},
		"shards triple": {[]string{"metrics.jsonl", good, "shards.json",
			`{"classes":1,"agents":[[1],[1]],"edges":[[0,1,0]]}`}, []string{"want two agents"}},
	} {
		dir := folder(t, c.files...)
		err := WriteReport(dir)
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %v, want %q", name, err, want)
			}
		}
		if _, err := os.Stat(filepath.Join(dir, "report.html")); err == nil {
			t.Errorf("%s: a page was written", name)
		}
	}
	dir := folder(t, "metrics.jsonl", good)
	if err := os.Mkdir(filepath.Join(dir, "config.yaml"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := WriteReport(dir); err == nil || !strings.Contains(err.Error(), "config.yaml") {
		t.Errorf("unreadable config: %v", err)
	}
	dir = folder(t, "metrics.jsonl", good)
	if err := os.Mkdir(filepath.Join(dir, "report.html"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := WriteReport(dir); err == nil || !strings.Contains(err.Error(), "report.html") {
		t.Errorf("page cannot be replaced: %v", err)
	}
	left, _ := filepath.Glob(filepath.Join(dir, ".*"))
	if len(left) != 0 {
		t.Errorf("temporary files remain: %v", left)
	}
}

func BenchmarkWriteReport(b *testing.B) {
	dir := folder(b, "metrics.jsonl", jsonl(b, evaluations(501)), "config.yaml", testConfig, "summary.json",
		testSummary, "shards.json", testShards(b, 10, 10))
	for b.Loop() {
		if err := WriteReport(dir); err != nil {
			b.Fatal(err)
		}
	}
	page, err := os.ReadFile(filepath.Join(dir, "report.html"))
	if err != nil || !bytes.Contains(page, []byte("501 evaluations")) {
		b.Fatal("the page is wrong", err)
	}
	b.ReportMetric(float64(len(page)), "B/page")
}
