package traincmd

import (
	"cmp"
	"context"
	"errors"
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
	"fspda/train/runfolder"
	"fspda/web"
)

// tokenVariable is the environment variable that sets the token of the live page. Without it each
// run draws a token.
const tokenVariable = "FSPDA_WEB_TOKEN"

// LiveShare is the share of the machine's processors that readers of the live page may use: the run
// in this process needs the rest.
const LiveShare = 0.01

// livePage shows a run of this process in a browser.
type livePage interface {
	// serve serves the page until close. The stop button of the page ends the context that it
	// returns.
	serve(ctx context.Context, folder string, r *run) (context.Context, error)

	// announce prints the address of the page.
	announce(d *display)

	// finish marks the run as ended; the page stays until close.
	finish()

	close()
}

// noPage is the live page of a run without --web.
type noPage struct{}

func (noPage) serve(ctx context.Context, _ string, _ *run) (context.Context, error) { return ctx, nil }
func (noPage) announce(*display)                                                    {}
func (noPage) finish()                                                              {}
func (noPage) close()                                                               {}

type pageServer struct {
	listener net.Listener
	loopback bool
	token    string

	server   *web.Server
	live     *train.LiveState
	control  *train.Control
	agents   []train.AgentStatus // scratch of status, which the server calls one at a time
	stop     context.CancelFunc  // ends the run
	stopping atomic.Bool
	ended    atomic.Bool

	end    context.CancelFunc // ends the server; nil before serve
	served sync.WaitGroup
}

// openLivePage listens at an address. An empty address gives no page.
func openLivePage(address string) (livePage, error) {
	if address == "" {
		return noPage{}, nil
	}
	l, loopback, err := web.Listen(address)
	if err != nil {
		return nil, command.UsageErrorf("--web: %v", err)
	}
	p := &pageServer{listener: l, loopback: loopback, token: os.Getenv(tokenVariable)}
	if p.token == "" {
		p.token = web.NewToken()
	}
	return p, nil
}

func (p *pageServer) serve(ctx context.Context, folder string, r *run) (context.Context, error) {
	c := r.setup.Config
	p.live, p.control = train.NewLiveState(c.Agents), train.NewControl()
	r.options.Live, r.options.Control = p.live, p.control
	ctx, p.stop = context.WithCancel(ctx)
	o := shownRuns(folder)
	o.Token, o.Loopback, o.Share = p.token, p.loopback, LiveShare
	o.Live = &web.LiveRun{Run: o.Only, Iterations: c.Iterations, Command: runfolder.CommandLine(os.Args),
		Status: p.status, Ended: p.ended.Load, Control: p.handleAction}
	if o.Only == "" {
		o.Live.Run = filepath.Base(folder)
	}
	var err error
	if p.server, err = web.NewServer(o); err != nil {
		return ctx, err
	}
	serving, end := context.WithCancel(context.Background())
	p.end = end
	// errors are ignored: training goes on without its page
	p.served.Go(func() { _ = web.Serve(serving, p.listener, p.server) })
	return ctx, nil
}

// serveFiles serves the page of a run whose agents are other processes, until the function that it
// returns is called. The page shows the files of the run as they grow, and has no buttons. An empty
// address serves nothing.
func serveFiles(address, folder string, log *zap.Logger) (end func(), err error) {
	if address == "" {
		return func() {}, nil
	}
	l, loopback, err := web.Listen(address)
	if err != nil {
		return nil, command.UsageErrorf("--web: %v", err)
	}
	o := shownRuns(folder)
	o.Loopback, o.Share = loopback, LiveShare
	s, err := web.NewServer(o)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	serving, stop := context.WithCancel(context.Background())
	var served sync.WaitGroup
	served.Go(func() { _ = web.Serve(serving, l, s) }) // errors are ignored: training goes on without its page
	log.Info("page", zap.String("url", web.URL(l)))
	return func() {
		if s.Readers() > 0 {
			time.Sleep(lastUpdate)
		}
		stop()
		served.Wait()
		_ = s.Close()
	}, nil
}

// shownRuns returns the runs that the page of a run shows: all runs of the default folder, or else
// only this run.
func shownRuns(run string) web.Options {
	dir, name := filepath.Split(filepath.Clean(run))
	dir = cmp.Or(dir, ".")
	if filepath.Clean(dir) == command.RunsDir {
		return web.Options{Dir: dir}
	}
	return web.Options{Dir: dir, Only: name}
}

func (p *pageServer) announce(d *display) {
	url := web.URL(p.listener)
	if d.terminal != nil {
		fmt.Fprintf(d.terminal, "%s#token=%s\n", url, p.token)
		return
	}
	d.log.Info("live page; its buttons need the token", zap.String("url", url), zap.String("token", p.token))
}

func (p *pageServer) status(since uint64) web.RunStatus {
	p.agents = p.live.Agents(p.agents)
	s := web.RunStatus{State: p.state(), Memory: processMemory(), Agents: make([]web.AgentStatus, len(p.agents))}
	for i, a := range p.agents {
		s.Agents[i] = web.AgentStatus(a)
	}
	s.Exchanges, s.Exchanged = p.live.Edges(since)
	return s
}

func (p *pageServer) state() string {
	switch {
	case p.ended.Load():
		return "ended"
	case p.stopping.Load():
		return "stopping"
	case p.control.Paused():
		return "paused"
	}
	return "running"
}

// handleAction carries out a button of the page.
func (p *pageServer) handleAction(action string) error {
	if p.ended.Load() {
		return fmt.Errorf("the run has ended")
	}
	switch action {
	case "pause":
		p.control.Pause()
	case "resume":
		p.control.Resume()
	case "checkpoint":
		p.control.Checkpoint()
	case "stop":
		p.stopping.Store(true)
		p.stop()
	}
	return nil
}

func (p *pageServer) finish() { p.ended.Store(true) }

// lastUpdate is the time in which readers can receive the end of a run before the page closes.
const lastUpdate = 700 * time.Millisecond

func (p *pageServer) close() {
	if p.end == nil {
		_ = p.listener.Close()
		return
	}
	p.finish()
	if p.server.Readers() > 0 {
		time.Sleep(lastUpdate)
	}
	p.end()
	p.served.Wait()
	p.stop()
	_ = p.server.Close()
}

func processMemory() uint64 {
	s := []runtimemetrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	runtimemetrics.Read(s)
	return s[0].Value.Uint64() - s[1].Value.Uint64()
}
