package traincmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	prom "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"fspda/cli/command"
	"fspda/dist/link"
	"fspda/train"
	"fspda/train/process"
	"fspda/web"
)

// metrics serves the metrics of a process to monitoring.
type metrics interface {
	serve(of observed, log *zap.Logger) // until close
	row(train.Row)                      // takes an evaluation
	close()
}

// observed is the source of metrics: all agents of a run, or the agent of this process.
type observed interface {
	// measure calls set for each measure that no evaluation computes, with its name, its value and
	// the values of its labels.
	measure(set func(name string, v float64, labels ...string))
	alive() error // the reason why the process cannot continue
	ready() error // the reason why the run does not advance
}

// noMetrics is used without --metrics-listen.
type noMetrics struct{}

func (noMetrics) serve(observed, *zap.Logger) {}
func (noMetrics) row(train.Row)               {}
func (noMetrics) close()                      {}

// metricsServer serves /metrics to Prometheus, /healthz (liveness) to a supervisor that restarts
// failed processes, and /readyz (readiness), which succeeds while the run advances. It never
// changes the run.
type metricsServer struct {
	labels prom.Labels
	of     observed

	mu   sync.Mutex
	last *train.Row // the latest evaluation in this process; nil: none yet

	listener net.Listener
	server   *http.Server
	served   sync.WaitGroup
}

// openMetrics listens at an address. An empty address serves nothing. rank is the rank of the
// agent, or empty if this process holds all agents.
func openMetrics(address, run, rank string) (metrics, error) {
	if address == "" {
		return noMetrics{}, nil
	}
	l, _, err := web.Listen(address)
	if err != nil {
		return nil, command.UsageErrorf("--metrics-listen: %v", err)
	}
	labels := prom.Labels{"run": run}
	if rank != "" {
		labels["rank"] = rank
	}
	return &metricsServer{labels: labels, listener: l}, nil
}

func (o *metricsServer) serve(of observed, log *zap.Logger) {
	o.of = of
	registry := prom.NewRegistry()
	prom.WrapRegistererWith(o.labels, registry).MustRegister(o)
	registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
	mux.HandleFunc("GET /healthz", probe(of.alive))
	mux.HandleFunc("GET /readyz", probe(func() error { return errors.Join(of.alive(), of.ready()) }))
	o.server = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second,
		IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10, ErrorLog: zap.NewStdLog(zap.NewNop())}
	o.served.Go(func() { _ = o.server.Serve(o.listener) }) // errors are ignored: training goes on without metrics
	log.Info("metrics", zap.String("url", web.URL(o.listener)+"metrics"))
}

// probe answers with an error, if there is one.
func probe(of func() error) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if err := of(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "ok\n") // the client may be gone
	}
}

func (o *metricsServer) close() {
	if o.server == nil { // serve was not called
		_ = o.listener.Close()
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if o.server.Shutdown(ctx) != nil {
		_ = o.server.Close()
	}
	o.served.Wait()
}

func (o *metricsServer) row(r train.Row) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last = &r
}

// measures are the metrics, with their meaning. Counters end in _total.
var measures = map[string]*measure{}

// measure is a metric with its labels besides run and rank.
type measure struct {
	desc *prom.Desc
	kind prom.ValueType
}

func init() {
	for _, m := range []struct{ name, help, label string }{
		{"fspda_iteration", "Iteration of the agent, or of the agent that is behind.", ""},
		{"fspda_iterations", "Iterations of the whole run.", ""},
		{"fspda_agents", "Agents of the run.", ""},
		{"fspda_loss", "Loss of the latest batch, a mean over the agents of this process.", ""},
		{"fspda_gradients_total", "Gradients of all agents until the latest evaluation.", ""},
		{"fspda_sent_bits_total", "Bits that the agents of this process sent, in the accounting of the run.", ""},
		{"fspda_row_iteration", "Iteration of the latest evaluation.", ""},
		{"fspda_train_loss", "Training loss of the mean model at the latest evaluation.", ""},
		{"fspda_test_loss", "Test loss of the mean model at the latest evaluation.", ""},
		{"fspda_test_accuracy", "Test accuracy of the mean model at the latest evaluation, from 0 to 1.", ""},
		{"fspda_test_accuracy_worst", "Least test accuracy of an agent at the latest evaluation, from 0 to 1.", ""},
		{"fspda_perplexity", "Perplexity of the mean model at the latest evaluation.", ""},
		{"fspda_agents_present", "Agents that the latest evaluation describes.", ""},
		{"fspda_consensus", "Sum of squared distances of the models to their mean at the latest evaluation.", ""},
		{"fspda_messages_total", "Messages that were sent.", ""},
		{"fspda_message_bytes_total", "Bytes of the messages, each counted once.", ""},
		{"fspda_sent_bytes_total", "Bytes that were sent, of all traffic.", ""},
		{"fspda_received_bytes_total", "Bytes that were received, of all traffic.", ""},
		{"fspda_sent_frames_total", "Frames that were sent.", ""},
		{"fspda_received_frames_total", "Frames that were received.", ""},
		{"fspda_direct_frames_total", "Frames received over connections that are not relayed.", ""},
		{"fspda_reconnects_total", "Connections that replaced an earlier one.", ""},
		{"fspda_sent_again_total", "Messages that were sent again over new connections.", ""},
		{"fspda_dropped_frames_total", "Frames that were dropped because they are invalid.", ""},
		{"fspda_refused_strangers_total", "Connections that were refused.", ""},
		{"fspda_connection_trouble_total", "Errors of connections.", ""},
		{"fspda_peers_up", "Other agents that are connected.", ""},
		{"fspda_peer_up", "Whether another agent is connected.", "peer"},
		{"fspda_peer_direct", "Whether the connection to another agent is direct.", "peer"},
		{"fspda_peer_silent_seconds", "Seconds since the last message of another agent.", "peer"},
		{"fspda_peer_iteration", "Iteration of another agent.", "peer"},
		{"fspda_peer_still_seconds", "Seconds since another agent was last seen to advance.", "peer"},
		{"fspda_peer_kept_bytes", "Bytes that are kept for another agent, in case they must be sent again.", "peer"},
	} {
		var labels []string
		if m.label != "" {
			labels = []string{m.label}
		}
		kind := prom.GaugeValue
		if strings.HasSuffix(m.name, "_total") {
			kind = prom.CounterValue
		}
		measures[m.name] = &measure{prom.NewDesc(m.name, m.help, labels, nil), kind}
	}
}

func (o *metricsServer) Describe(to chan<- *prom.Desc) {
	for _, m := range measures {
		to <- m.desc
	}
}

func (o *metricsServer) Collect(to chan<- prom.Metric) {
	set := func(name string, v float64, labels ...string) {
		m := measures[name]
		to <- prom.MustNewConstMetric(m.desc, m.kind, v, labels...)
	}
	o.of.measure(set)
	o.mu.Lock()
	r := o.last
	o.mu.Unlock()
	if r == nil {
		return
	}
	set("fspda_row_iteration", float64(r.Iteration))
	set("fspda_gradients_total", float64(r.GradsTotal))
	for name, v := range map[string]train.Num{"fspda_train_loss": r.TrainLossAvg, "fspda_test_loss": r.TestLossAvg,
		"fspda_test_accuracy": r.TestAccAvg, "fspda_test_accuracy_worst": r.TestAccMin,
		"fspda_perplexity":     r.Perplexity,
		"fspda_agents_present": r.AgentsPresent, "fspda_consensus": r.Consensus} {
		if !math.IsNaN(float64(v)) {
			set(name, float64(v))
		}
	}
}

// wholeRun is a run whose agents are all in this process.
type wholeRun struct {
	live       *train.LiveState
	iterations int
}

func (w wholeRun) measure(set func(string, float64, ...string)) {
	agents := w.live.Agents(nil)
	measureAgents(agents, w.iterations, len(agents), set)
}

// measureAgents sums up the agents of this process.
func measureAgents(agents []train.AgentStatus, iterations, all int, set func(string, float64, ...string)) {
	behind, loss, known, sent := agents[0].Iteration, 0.0, 0, uint64(0)
	for _, a := range agents {
		behind = min(behind, a.Iteration)
		sent += a.Sent
		if !math.IsNaN(a.Loss) {
			loss += a.Loss
			known++
		}
	}
	set("fspda_iteration", float64(behind))
	set("fspda_iterations", float64(iterations))
	set("fspda_agents", float64(all))
	set("fspda_sent_bits_total", float64(sent))
	if known > 0 {
		set("fspda_loss", loss/float64(known))
	}
}

func (wholeRun) alive() error { return nil }
func (wholeRun) ready() error { return nil }

// oneProcess is the agent of this process in a run of many.
type oneProcess struct {
	live       *train.LiveState
	node       *link.Node
	rank       int
	iterations int
	after      time.Duration // the time after which an agent that does not advance is named; 0: the usual one
	awaited    awaited
}

// awaited knows which agents take part in a run of many processes.
type awaited interface {
	// member reports whether an agent takes part.
	member(agent int) bool
	// undecided returns an error while the members can decide nothing.
	undecided() error
}

// fixedMembers is awaited of a run whose members do not change.
type fixedMembers struct{}

func (fixedMembers) member(int) bool  { return true }
func (fixedMembers) undecided() error { return nil }

func (o oneProcess) measure(set func(string, float64, ...string)) {
	agents := o.live.Agents(nil)
	measureAgents(agents[o.rank:o.rank+1], o.iterations, len(agents), set)
	s := o.node.Stats()
	for name, n := range map[string]uint64{
		"fspda_messages_total": s.Messages, "fspda_message_bytes_total": o.node.WireBytes(),
		"fspda_sent_bytes_total": s.SentBytes, "fspda_received_bytes_total": s.GotBytes,
		"fspda_sent_frames_total": s.SentFrames, "fspda_received_frames_total": s.GotFrames,
		"fspda_direct_frames_total": s.Direct, "fspda_reconnects_total": s.Reconnects,
		"fspda_sent_again_total":     s.Resent,
		"fspda_dropped_frames_total": s.Dropped, "fspda_refused_strangers_total": s.Refused,
		"fspda_connection_trouble_total": s.ConnErrors,
	} {
		set(name, float64(n))
	}
	connected := 0.0
	for _, p := range o.node.Peers() {
		peer, at := strconv.Itoa(p.Agent), o.node.Position(p.Agent)
		set("fspda_peer_silent_seconds", p.SilentFor.Seconds(), peer)
		if !p.Linked {
			connected += oneIf(p.SilentFor <= process.SilentAfter)
			continue
		}
		set("fspda_peer_up", oneIf(p.Connected), peer)
		set("fspda_peer_direct", oneIf(p.Direct), peer)
		set("fspda_peer_iteration", float64(at.T), peer)
		set("fspda_peer_still_seconds", at.Since.Seconds(), peer)
		set("fspda_peer_kept_bytes", float64(p.LogBytes), peer)
		connected += oneIf(p.Connected)
	}
	set("fspda_peers_up", connected)
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// alive reports on this process only: a process that waits for others is alive, since a restart
// would not help.
func (o oneProcess) alive() error { return o.node.Failure() }

// ready reports whether the members can decide, and all other ones are connected, or heard by agent 0
// where there is to be no connection, send valid messages, and advance.
func (o oneProcess) ready() error {
	var missing []int
	trouble := []error{o.awaited.undecided()}
	for _, p := range o.node.Peers() {
		if !o.awaited.member(p.Agent) {
			continue
		}
		if p.Linked && !p.Connected || !p.Linked && p.SilentFor > process.SilentAfter {
			missing = append(missing, p.Agent)
		}
		if _, reason := o.node.Offence(p.Agent); reason != nil {
			trouble = append(trouble, fmt.Errorf("agent %d sends what is refused: %w", p.Agent, reason))
		}
	}
	if len(missing) > 0 {
		trouble = append(trouble, fmt.Errorf("waiting for agents %v", missing))
	}
	for _, s := range process.Hanging(o.node, o.rank, len(o.live.Agents(nil)), o.after) {
		if o.awaited.member(s.Agent) {
			trouble = append(trouble, errors.New(s.String()))
		}
	}
	return errors.Join(trouble...)
}

// iterationCore adds the current iteration of an agent to every log line.
type iterationCore struct {
	zapcore.Core
	at func() int
}

// withIteration returns a log whose lines name the current iteration of an agent.
func withIteration(log *zap.Logger, live *train.LiveState, rank int) *zap.Logger {
	return log.WithOptions(zap.WrapCore(func(c zapcore.Core) zapcore.Core {
		return iterationCore{c, func() int { return live.Agents(nil)[rank].Iteration }}
	}))
}

func (p iterationCore) With(fields []zapcore.Field) zapcore.Core {
	return iterationCore{p.Core.With(fields), p.at}
}

func (p iterationCore) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if p.Enabled(e.Level) {
		return ce.AddCore(e, p)
	}
	return ce
}

func (p iterationCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	for _, f := range fields {
		if f.Key == "iteration" { // the line names another iteration
			return p.Core.Write(e, fields)
		}
	}
	return p.Core.Write(e, append(fields[:len(fields):len(fields)], zap.Int("iteration", p.at())))
}
