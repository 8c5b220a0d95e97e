package traincmd

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	runtimemetrics "runtime/metrics"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"fspda/cli/command"
	"fspda/train"
	"fspda/web"
)

// tokenVariable is the environment variable that sets the token of the page; without it each run
// has one of its own.
const tokenVariable = "FSPDA_WEB_TOKEN"

// LiveShare is the share of the machine's processors that readers of the live page may use: the run
// in this process needs the rest.
const LiveShare = 0.01

// dashboard is the live page of a run in this process. A nil dashboard shows nothing.
type dashboard struct {
	listener net.Listener
	loopback bool
	token    string

	server   *web.Server
	watch    *train.LiveState
	control  *train.Control
	sights   []train.AgentStatus // memory of look, which the server calls one at a time
	stop     context.CancelFunc  // of the run
	stopping atomic.Bool
	ended    atomic.Bool

	end    context.CancelFunc // of the server
	served sync.WaitGroup
}

// openDashboard listens at an address; nil where that is empty.
func openDashboard(address string) (*dashboard, error) {
	if address == "" {
		return nil, nil
	}
	l, loopback, err := web.Listen(address)
	if err != nil {
		return nil, command.UsageErrorf("--web: %v", err)
	}
	d := &dashboard{listener: l, loopback: loopback, token: os.Getenv(tokenVariable)}
	if d.token == "" {
		d.token = web.NewToken()
	}
	return d, nil
}

// begin serves the page of a run in folder, until close. The options come back with what the page
// needs, and a context that its stop button ends.
func (d *dashboard) begin(ctx context.Context, folder string, s *train.Setup, opt train.Options) (context.Context,
	train.Options, error) {
	if d == nil {
		return ctx, opt, nil
	}
	d.watch, d.control = train.NewLiveState(s.Config.Agents), train.NewControl()
	opt.Live, opt.Control = d.watch, d.control
	ctx, d.stop = context.WithCancel(ctx)
	o := webFolder(folder)
	o.Token, o.Loopback, o.Share = d.token, d.loopback, LiveShare
	o.Live = &web.Live{Run: o.Only, Iterations: s.Config.Iterations, Command: train.CommandLine(os.Args), Look: d.look,
		Steer: d.steer}
	if o.Only == "" {
		o.Live.Run = filepath.Base(folder)
	}
	var err error
	if d.server, err = web.NewServer(o); err != nil {
		return ctx, opt, err
	}
	serving, end := context.WithCancel(context.Background())
	d.end = end
	// a page that cannot be served is no reason to stop training
	d.served.Go(func() { _ = web.Serve(serving, d.listener, d.server) })
	return ctx, opt, nil
}

// webFolder says what a page beside a run shows: all runs where runs without --out go, else this
// one alone.
func webFolder(run string) web.Options {
	dir, name := filepath.Split(filepath.Clean(run))
	if dir == "" {
		dir = "."
	}
	if filepath.Clean(dir) == command.RunsDir {
		return web.Options{Dir: dir}
	}
	return web.Options{Dir: dir, Only: name}
}

// tell says where the page is.
func (d *dashboard) tell(show *show) {
	if d == nil {
		return
	}
	url := web.URL(d.listener)
	switch {
	case show.terminal != nil:
		fmt.Fprintf(show.terminal, "%s#token=%s\n", url, d.token)
	default:
		show.log.Info("the live page; steering takes the token", zap.String("url", url), zap.String("token", d.token))
	}
}

// look shows the run to the server.
func (d *dashboard) look(since uint64) web.Sight {
	d.sights = d.watch.Agents(d.sights)
	s := web.Sight{State: d.state(), Memory: heldMemory(), Agents: make([]web.AgentSight, len(d.sights))}
	for i, a := range d.sights {
		s.Agents[i] = web.AgentSight(a)
	}
	s.Exchanges, s.Exchanged = d.watch.Edges(since)
	return s
}

func (d *dashboard) state() string {
	switch {
	case d.ended.Load():
		return "ended"
	case d.stopping.Load():
		return "stopping"
	case d.control.Paused():
		return "paused"
	}
	return "running"
}

// steer does what a button of the page says.
func (d *dashboard) steer(action string) error {
	if d.ended.Load() {
		return fmt.Errorf("the run has ended")
	}
	switch action {
	case "pause":
		d.control.Pause()
	case "resume":
		d.control.Resume()
	case "checkpoint":
		d.control.Checkpoint()
	case "stop":
		d.stopping.Store(true)
		d.stop()
	}
	return nil
}

// lastLook is how long readers have to hear how a run ended.
const lastLook = 700 * time.Millisecond

// finish marks the run as ended; the page stays until close.
func (d *dashboard) finish() {
	if d != nil {
		d.ended.Store(true)
	}
}

// close ends the page. Whoever looks on hears of the end before.
func (d *dashboard) close() {
	if d == nil {
		return
	}
	if d.end == nil {
		_ = d.listener.Close()
		return
	}
	d.finish()
	if d.server.Readers() > 0 {
		time.Sleep(lastLook)
	}
	d.end()
	d.served.Wait()
	d.stop()
	_ = d.server.Close()
}

// heldMemory is what the program holds, in bytes.
func heldMemory() uint64 {
	s := []runtimemetrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	runtimemetrics.Read(s)
	return s[0].Value.Uint64() - s[1].Value.Uint64()
}
