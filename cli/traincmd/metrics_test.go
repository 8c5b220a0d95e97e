package traincmd

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"fspda/cpu"
	"fspda/dist"
	"fspda/dist/discover/nats"
	"fspda/dist/link"
	"fspda/train"
	"fspda/web"
)

// A running pair of agents answers Prometheus and probes.
func TestMetricsServer(t *testing.T) {
	var nodes [2]*link.Node
	var first string // The address of the NATS server of agent 0.
	open := func(i int) {
		t.Helper()
		by := nats.Options{Run: "seen", Self: i, Agents: 2, Server: nats.Server{Listen: "127.0.0.1:0"}}
		if i > 0 {
			by.Server.Join = []string{first}
		}
		found, err := nats.Open(by)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = found.Address()
		}
		n, err := link.Open(link.Options{Run: "seen", Self: i, Agents: 2, Dim: 10, Pool: dist.NewPool(cpu.New()),
			Discovery: found})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(n.Close)
		if err := n.Start(nil, 0); err != nil {
			t.Fatal(err)
		}
		nodes[i] = n
	}
	open(0)
	o, err := openMetrics("127.0.0.1:0", "seen", "0")
	if err != nil {
		t.Fatal(err)
	}
	of := &oneProcess{live: train.NewLiveState(2), node: nodes[0], iterations: 900, awaited: fixedMembers{}}
	o.serve(of, zap.NewNop())
	defer o.close()
	get := func(path string) (int, string) {
		t.Helper()
		r, err := http.Get(web.URL(o.(*metricsServer).listener) + path)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return r.StatusCode, string(b)
	}
	if code, text := get("readyz"); code != http.StatusServiceUnavailable || !strings.Contains(text, "[1]") {
		t.Errorf("without its peer: %d %s", code, text)
	}
	if code, _ := get("healthz"); code != http.StatusOK {
		t.Errorf("without its peer: not healthy, %d", code)
	}
	open(1)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := nodes[0].Ready(ctx); err != nil {
		t.Fatal(err)
	}
	if code, text := get("readyz"); code != http.StatusOK {
		t.Errorf("together: %d %s", code, text)
	}
	of.after = 200 * time.Millisecond
	nodes[1].Advance(7, dist.Working)
	for code, text := get("readyz"); code != http.StatusServiceUnavailable; code, text = get("readyz") {
		if text != "ok\n" || ctx.Err() != nil {
			t.Fatalf("an agent hangs: %d %s", code, text)
		}
	}
	if _, text := get("readyz"); !strings.Contains(text, "agent 1 has not advanced in iteration 7") {
		t.Errorf("an agent hangs: %s", text)
	}
	var row train.Row
	row.Iteration, row.TestAccAvg, row.Perplexity = 8, 0.75, train.Num(math.NaN())
	o.row(row)
	code, text := get("metrics")
	promtool(t, text)
	line := regexp.MustCompile(
		`^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{[a-zA-Z_]+="[^"]*"(, ?[a-zA-Z_]+="[^"]*")*\})? (NaN|[-+0-9.e]+)$`)
	for l := range strings.Lines(text) {
		if l = strings.TrimSpace(l); l != "" && !strings.HasPrefix(l, "#") && !line.MatchString(l) {
			t.Errorf("not a line of Prometheus: %q", l)
		}
	}
	for _, want := range []string{`fspda_peer_up{peer="1",rank="0",run="seen"} 1`,
		`fspda_peer_iteration{peer="1",rank="0",run="seen"} 7`,
		`fspda_peers_up{rank="0",run="seen"} 1`, `fspda_iteration{rank="0",run="seen"} 0`,
		`fspda_iterations{rank="0",run="seen"} 900`, `fspda_test_accuracy{rank="0",run="seen"} 0.75`,
		"# HELP fspda_peers_up Other agents that are connected.", "# TYPE fspda_sent_bytes_total counter",
		"fspda_sent_bytes_total{",
		"process_resident_memory_bytes "} {
		if code != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("%d: no %s in\n%s", code, want, text)
		}
	}
	if strings.Contains(text, "fspda_perplexity{") {
		t.Error("a run of pictures has a perplexity")
	}
	nodes[1].Advance(8, dist.Idle)
	if err := nodes[1].Report(ctx, 0, 0, []byte("nonsense")); err != nil {
		t.Fatal(err)
	}
	refused, stop := context.WithCancel(ctx)
	go func() {
		_ = nodes[0].TakeReport(refused, 1, func(int, []byte) error { return dist.Invalidf("nonsense") })
	}()
	text = ""
	for !strings.Contains(text, "agent 1 sends what is refused: ") && ctx.Err() == nil {
		_, text = get("readyz")
	}
	stop()
	nodes[0].Close()
	for _, path := range []string{"healthz", "readyz"} {
		if code, _ := get(path); code != http.StatusServiceUnavailable {
			t.Errorf("closed: %s is %d", path, code)
		}
	}
	if _, err := openMetrics("here", "seen", "0"); err == nil || !strings.Contains(err.Error(), "--metrics-listen") {
		t.Errorf("address without a port: %v", err)
	}
}

func TestLogNamesIteration(t *testing.T) {
	core, lines := observer.New(zapcore.InfoLevel)
	log := withIteration(zap.New(core), train.NewLiveState(2), 1).With(zap.Int("rank", 1))
	log.Info("a")
	log.Info("b", zap.Int("iteration", 7))
	log.Debug("c")
	all := lines.All()
	if len(all) != 2 || all[0].ContextMap()["iteration"] != int64(0) || all[0].ContextMap()["rank"] != int64(1) ||
		all[1].ContextMap()["iteration"] != int64(7) {
		t.Errorf("%+v", all)
	}
}

// promtool checks a page of metrics by the tool of Prometheus, if it is installed.
func promtool(t *testing.T, page string) {
	t.Helper()
	path, err := exec.LookPath("promtool")
	if err != nil {
		t.Log("promtool is not installed: the page is not checked by it")
		return
	}
	cmd := exec.Command(path, "check", "metrics")
	var lines strings.Builder // without bits, whose name is older than promtool's advice to count bytes
	for l := range strings.Lines(page) {
		if !strings.Contains(l, "fspda_sent_bits_total") {
			lines.WriteString(l)
		}
	}
	cmd.Stdin = strings.NewReader(lines.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}

// The alert rules and the dashboard name metrics that exist, and promtool accepts the rules.
func TestMonitoringFiles(t *testing.T) {
	dir := filepath.Join("..", "..", "deploy")
	for _, name := range []string{"prometheus-alerts.yaml", "grafana-dashboard.json"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(`\bfspda_[a-z_]+`).FindAllString(string(text), -1)
		if len(found) < 5 {
			t.Errorf("%s names only %v", name, found)
		}
		for _, metric := range found {
			if measures[metric] == nil {
				t.Errorf("%s names %s, which is no metric", name, metric)
			}
		}
	}
	var board any
	text, err := os.ReadFile(filepath.Join(dir, "grafana-dashboard.json"))
	if err := errors.Join(err, json.Unmarshal(text, &board)); err != nil {
		t.Errorf("the dashboard: %v", err)
	}
	path, err := exec.LookPath("promtool")
	if err != nil {
		t.Log("promtool is not installed: the rules are not checked by it")
		return
	}
	for _, args := range [][]string{{"check", "rules", "prometheus-alerts.yaml"}, {"test", "rules",
		"prometheus-alerts-test.yaml"}} {
		cmd := exec.Command(path, args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
}
