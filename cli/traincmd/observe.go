package traincmd

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	prom "github.com/VictoriaMetrics/metrics"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"fspda/cli/command"
	"fspda/dist/nats"
	"fspda/train"
	"fspda/web"
)

// observatory tells machines how an agent is: /metrics for Prometheus, /healthz for whoever starts
// again what is broken, and /readyz for whoever wants to know whether the run goes on. It only
// reads.
type observatory struct {
	run    string
	rank   int
	watch  *train.LiveState
	node   *nats.Node
	set    *prom.Set
	mu     sync.Mutex // one look at a time
	sights []train.AgentStatus

	listener net.Listener
	server   *http.Server
	served   sync.WaitGroup
}

// openObservatory listens at an address; nil where that is empty.
func openObservatory(address, run string, rank int) (*observatory, error) {
	if address == "" {
		return nil, nil
	}
	l, _, err := web.Listen(address)
	if err != nil {
		return nil, command.UsageErrorf("--metrics-listen: %v", err)
	}
	return &observatory{run: run, rank: rank, set: prom.NewSet(), listener: l}, nil
}

// begin serves, until close.
func (o *observatory) begin(watch *train.LiveState, node *nats.Node, log *zap.Logger) {
	if o == nil {
		return
	}
	o.watch, o.node = watch, node
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", o.metrics)
	mux.HandleFunc("GET /healthz", o.health)
	mux.HandleFunc("GET /readyz", o.ready)
	o.server = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second,
		IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
		ErrorLog: zap.NewStdLog(zap.NewNop())}
	o.served.Go(func() { _ = o.server.Serve(o.listener) }) // what cannot be watched can still train
	log.Info("metrics", zap.String("url", web.URL(o.listener)+"metrics"))
}

func (o *observatory) close() {
	switch {
	case o == nil:
	case o.server == nil:
		_ = o.listener.Close()
	default:
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if o.server.Shutdown(ctx) != nil {
			_ = o.server.Close()
		}
		o.served.Wait()
	}
}

// metrics writes all that is counted, in the text format of Prometheus.
func (o *observatory) metrics(w http.ResponseWriter, _ *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	o.look()
	o.set.WritePrometheus(w)
	prom.WriteProcessMetrics(w)
}

// look brings the metrics up to date.
func (o *observatory) look() {
	o.sights = o.watch.Agents(o.sights)
	own := o.sights[o.rank]
	o.gauge("fspda_iteration", "").Set(float64(own.Iteration))
	o.gauge("fspda_loss", "").Set(own.Loss)
	o.counter("fspda_sent_bits_total", own.Sent)
	s := o.node.Stats()
	for name, n := range map[string]uint64{
		"fspda_messages_total": s.Messages, "fspda_message_bytes_total": o.node.WireBytes(),
		"fspda_sent_bytes_total": s.SentBytes, "fspda_received_bytes_total": s.GotBytes, "fspda_sent_frames_total": s.SentFrames, "fspda_received_frames_total": s.GotFrames,
		"fspda_direct_frames_total": s.Direct, "fspda_asked_again_total": s.Requested, "fspda_sent_again_total": s.Retransmitted,
		"fspda_dropped_frames_total": s.Dropped, "fspda_refused_strangers_total": s.Refused, "fspda_connection_trouble_total": s.ConnErrors,
	} {
		o.counter(name, n)
	}
	there := 0
	for _, p := range o.node.Peers() {
		peer := fmt.Sprintf(`,peer="%d"`, p.Agent)
		o.gauge("fspda_peer_up", peer).Set(oneIf(p.Connected))
		o.gauge("fspda_peer_direct", peer).Set(oneIf(p.Direct))
		o.gauge("fspda_peer_silent_seconds", peer).Set(p.SilentFor.Seconds())
		o.gauge("fspda_peer_kept_bytes", peer).Set(float64(p.LogBytes))
		there += int(oneIf(p.Connected))
	}
	o.gauge("fspda_peers_up", "").Set(float64(there))
}

func (o *observatory) gauge(name, more string) *prom.Gauge {
	return o.set.GetOrCreateGauge(o.named(name, more), nil)
}

func (o *observatory) counter(name string, n uint64) {
	o.set.GetOrCreateCounter(o.named(name, "")).Set(n)
}

// named adds the labels. The name of a run has no character that would have to be escaped.
func (o *observatory) named(name, more string) string {
	return fmt.Sprintf(`%s{run="%s",rank="%d"%s}`, name, o.run, o.rank, more)
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// health is about this process alone: one that waits for others is healthy, and starting it again
// would help nobody.
func (o *observatory) health(w http.ResponseWriter, _ *http.Request) {
	if err := o.node.Failure(); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	_, _ = io.WriteString(w, "ok\n") // who asked may have gone
}

// ready is about the run: all others are there.
func (o *observatory) ready(w http.ResponseWriter, r *http.Request) {
	if o.node.Failure() != nil {
		o.health(w, r)
		return
	}
	var missing []int
	for _, p := range o.node.Peers() {
		if !p.Connected {
			missing = append(missing, p.Agent)
		}
	}
	if len(missing) > 0 {
		http.Error(w, fmt.Sprintf("waiting for agents %v", missing), http.StatusServiceUnavailable)
		return
	}
	_, _ = io.WriteString(w, "ok\n")
}

// placed adds to every line of a log the iteration in which its agent is.
type placed struct {
	zapcore.Core
	at func() int
}

// withIteration makes a log say where the agent is.
func withIteration(log *zap.Logger, watch *train.LiveState, rank int) *zap.Logger {
	return log.WithOptions(zap.WrapCore(func(c zapcore.Core) zapcore.Core {
		return placed{c, func() int { return watch.Agents(nil)[rank].Iteration }}
	}))
}

func (p placed) With(fields []zapcore.Field) zapcore.Core { return placed{p.Core.With(fields), p.at} }

func (p placed) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if p.Enabled(e.Level) {
		return ce.AddCore(e, p)
	}
	return ce
}

func (p placed) Write(e zapcore.Entry, fields []zapcore.Field) error {
	for _, f := range fields {
		if f.Key == "iteration" { // it speaks of another one
			return p.Core.Write(e, fields)
		}
	}
	return p.Core.Write(e, append(fields[:len(fields):len(fields)], zap.Int("iteration", p.at())))
}
