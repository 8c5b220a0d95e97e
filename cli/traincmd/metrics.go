package traincmd

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	prom "github.com/VictoriaMetrics/metrics"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"fspda/cli/command"
	"fspda/dist/link"
	"fspda/train"
	"fspda/train/process"
	"fspda/web"
)

// metrics serves the metrics of an agent's process to monitoring.
type metrics interface {
	serve(live *train.LiveState, node *link.Node, log *zap.Logger) // until close
	close()
}

// noMetrics is used without --metrics-listen.
type noMetrics struct{}

func (noMetrics) serve(*train.LiveState, *link.Node, *zap.Logger) {}
func (noMetrics) close()                                          {}

// metricsServer serves /metrics to Prometheus, /healthz (liveness) to a supervisor that restarts
// failed processes, and /readyz (readiness), which succeeds while all agents are connected. It
// never changes the run.
type metricsServer struct {
	run    string
	rank   int
	live   *train.LiveState
	node   *link.Node
	set    *prom.Set
	mu     sync.Mutex          // held while metrics are collected and written
	agents []train.AgentStatus // scratch of collect
	after  time.Duration       // the time after which an agent that does not advance is named; 0: the usual one

	listener net.Listener
	server   *http.Server
	served   sync.WaitGroup
}

// openMetrics listens at an address. An empty address serves nothing.
func openMetrics(address, run string, rank int) (metrics, error) {
	if address == "" {
		return noMetrics{}, nil
	}
	l, _, err := web.Listen(address)
	if err != nil {
		return nil, command.UsageErrorf("--metrics-listen: %v", err)
	}
	return &metricsServer{run: run, rank: rank, set: prom.NewSet(), listener: l}, nil
}

func (o *metricsServer) serve(live *train.LiveState, node *link.Node, log *zap.Logger) {
	o.live, o.node = live, node
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", o.metrics)
	mux.HandleFunc("GET /healthz", o.health)
	mux.HandleFunc("GET /readyz", o.ready)
	o.server = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second,
		IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10, ErrorLog: zap.NewStdLog(zap.NewNop())}
	o.served.Go(func() { _ = o.server.Serve(o.listener) }) // errors are ignored: training goes on without metrics
	log.Info("metrics", zap.String("url", web.URL(o.listener)+"metrics"))
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

// metrics writes all metrics in the text format of Prometheus.
func (o *metricsServer) metrics(w http.ResponseWriter, _ *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	o.collect()
	o.set.WritePrometheus(w)
	prom.WriteProcessMetrics(w)
}

// collect updates the metrics.
func (o *metricsServer) collect() {
	o.agents = o.live.Agents(o.agents)
	own := o.agents[o.rank]
	o.gauge("fspda_iteration", "").Set(float64(own.Iteration))
	o.gauge("fspda_loss", "").Set(own.Loss)
	o.counter("fspda_sent_bits_total", own.Sent)
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
		o.counter(name, n)
	}
	connected := 0
	for _, p := range o.node.Peers() {
		peer := fmt.Sprintf(`,peer="%d"`, p.Agent)
		o.gauge("fspda_peer_up", peer).Set(oneIf(p.Connected))
		o.gauge("fspda_peer_direct", peer).Set(oneIf(p.Direct))
		o.gauge("fspda_peer_silent_seconds", peer).Set(p.SilentFor.Seconds())
		at := o.node.Position(p.Agent)
		o.gauge("fspda_peer_iteration", peer).Set(float64(at.T))
		o.gauge("fspda_peer_still_seconds", peer).Set(at.Since.Seconds())
		o.gauge("fspda_peer_kept_bytes", peer).Set(float64(p.LogBytes))
		connected += int(oneIf(p.Connected))
	}
	o.gauge("fspda_peers_up", "").Set(float64(connected))
}

func (o *metricsServer) gauge(name, more string) *prom.Gauge {
	return o.set.GetOrCreateGauge(o.named(name, more), nil)
}

func (o *metricsServer) counter(name string, n uint64) {
	o.set.GetOrCreateCounter(o.named(name, "")).Set(n)
}

// named adds the labels. Names of runs hold no character that needs escaping.
func (o *metricsServer) named(name, more string) string {
	return fmt.Sprintf(`%s{run="%s",rank="%d"%s}`, name, o.run, o.rank, more)
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// health reports on this process only: a process that waits for others is healthy, since a restart
// would not help.
func (o *metricsServer) health(w http.ResponseWriter, _ *http.Request) {
	if err := o.node.Failure(); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	_, _ = io.WriteString(w, "ok\n") // the client may be gone
}

// ready reports whether all other agents are connected, send valid messages, and advance.
func (o *metricsServer) ready(w http.ResponseWriter, r *http.Request) {
	if o.node.Failure() != nil {
		o.health(w, r)
		return
	}
	var missing []int
	var trouble []string
	for _, p := range o.node.Peers() {
		if !p.Connected {
			missing = append(missing, p.Agent)
		}
		if reason, _ := o.node.Offence(p.Agent); reason != nil {
			trouble = append(trouble, fmt.Sprintf("agent %d sends what is refused: %v", p.Agent, reason))
		}
	}
	if len(missing) > 0 {
		trouble = append(trouble, fmt.Sprintf("waiting for agents %v", missing))
	}
	for _, s := range process.Hanging(o.node, o.rank, len(o.live.Agents(nil)), o.after) {
		trouble = append(trouble, s.String())
	}
	if len(trouble) > 0 {
		http.Error(w, strings.Join(trouble, "\n"), http.StatusServiceUnavailable)
		return
	}
	_, _ = io.WriteString(w, "ok\n")
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
