package nats

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/zap"

	"fspda/dist/discover"
)

// Server configures the NATS server embedded in an agent's process. It accepts connections of the
// servers of other agents; its only client is in the same process.
type Server struct {
	Listen    string   // HOST:PORT for other servers; port 0 is any free one
	Advertise string   // HOST:PORT under which other servers reach it, if that differs
	Join      []string // HOST:PORT of some other servers; they announce the rest

	check time.Duration // interval at which routes are compared; changed by tests
}

// embeddedServer is a running server. A server with routes must have a port for clients: it is
// bound to the loopback address and requires a token that never leaves the process.
type embeddedServer struct {
	token, listen string       // listen: where other servers connect
	trouble       atomic.Value // The last error in the server's log, a string.

	mu  sync.Mutex
	now *server.Server // replaced by restart
}

// InProcessConn implements InProcessConnProvider of the client library.
func (e *embeddedServer) InProcessConn() (net.Conn, error) { return e.running().InProcessConn() }

func (e *embeddedServer) running() *server.Server {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.now
}

// restart replaces the server by one at the same address, which joins the others as a new one. The
// client in this process connects to it by itself.
func (e *embeddedServer) restart(o Options) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	o.Server.Listen = e.listen
	stop(e.now)
	s, err := e.start(o)
	if err == nil {
		e.now = s
	}
	return err
}

// start starts a server and returns once it listens.
func (e *embeddedServer) start(o Options) (*server.Server, error) {
	host, port, err := discover.HostPort(o.Server.Listen)
	if err != nil {
		return nil, err
	}
	port = cmp.Or(port, server.RANDOM_PORT)
	cluster := server.ClusterOpts{Name: "fspda-" + o.Run, Host: host, Port: port, Advertise: o.Server.Advertise,
		PoolSize: -1, Compression: server.CompressionOpts{Mode: server.CompressionOff}, ConnectRetries: 1 << 30,
		PingInterval: routePing, MaxPingsOut: 2}
	if t := o.TLS; t != nil {
		cluster.TLSConfig, cluster.TLSTimeout = t, 5
	}
	opts := &server.Options{ServerName: fmt.Sprintf("%s-%d-%x", o.Run, o.Self, randomID()), Host: "127.0.0.1",
		Port: server.RANDOM_PORT, Authorization: e.token, NoSigs: true, NoLog: true, Cluster: cluster,
		MaxPayload: 1 << 20, DisableShortFirstPing: true, NoSystemAccount: true}
	for _, j := range o.Server.Join {
		if _, _, err := discover.HostPort(j); err != nil {
			return nil, err
		}
		opts.Routes = append(opts.Routes, &url.URL{Scheme: "nats-route", Host: j})
	}
	s, err := server.NewServer(opts)
	if err != nil {
		return nil, fmt.Errorf("nats: cannot set up the server: %w", err)
	}
	log := serverLog{o.Log, make(chan string, 1), &e.trouble}
	s.SetLogger(log, false, false)
	go s.Start()
	for began := time.Now(); !s.ReadyForConnections(time.Second); {
		select {
		case why := <-log.fatal:
			s.Shutdown()
			return nil, fmt.Errorf("nats: the server cannot listen at %s (%s): is the port taken?", o.Server.Listen,
				why)
		default:
		}
		if time.Since(began) > startTime {
			s.Shutdown()
			return nil, fmt.Errorf("nats: the server at %s has not started after %v: is the machine overloaded?",
				o.Server.Listen, startTime)
		}
	}
	return s, nil
}

// routePing is the time between two pings of a route. A route ends when two are not answered.
const routePing = 5 * time.Second

// startTime bounds how long a server may take to listen on a loaded machine.
const startTime = time.Minute

func stop(s *server.Server) {
	s.Shutdown()
	s.WaitForShutdown()
}

// watchRoutes starts the server of this process anew if it has had fewer routes than the server of
// agent 0 for two intervals while an agent did not answer: then it lacks a route to a running
// server. Servers that lose connections while others start may not find each other again.
func (d *Discovery) watchRoutes() {
	first := d.peers[coordinator]
	if d.server == nil || first == nil {
		return
	}
	wait := d.opt.Server.check
	began, warned := time.Now(), time.Time{}
	for lacking := 0; d.open.Err() == nil; {
		if d.routes() > 0 {
			began = time.Now()
		} else if time.Since(began) >= 2*d.opt.Server.check && time.Since(warned) >= maxRouteCheck {
			warned = time.Now()
			d.warnUnjoined()
		}
		asked := d.unanswered.Load()
		first.routes.Store(0)
		_ = first.publish(packetAsk, 0, 0, nil)
		select {
		case <-time.After(wait):
		case <-d.open.Done():
		}
		if d.unanswered.Load() == asked || int(first.routes.Load()) <= d.routes() {
			lacking = 0
			continue
		}
		if lacking++; lacking < 2 || d.open.Err() != nil {
			continue
		}
		d.log.Warn("the NATS server of this process lacks a route; starting it again")
		if err := d.server.restart(d.opt); err != nil {
			d.log.Warn("the NATS server of this process cannot be started again", zap.Error(err))
		}
		lacking = 0
		wait = min(2*wait, maxRouteCheck)
	}
}

// warnUnjoined says at which addresses the server of this process cannot join any other.
func (d *Discovery) warnUnjoined() {
	about := []zap.Field{zap.String("join", strings.Join(d.opt.Server.Join, ", "))}
	if why, ok := d.server.trouble.Load().(string); ok {
		about = append(about, zap.String("cause", why))
	}
	d.log.Warn("no agent answers where this one is to join the others; trying again", about...)
}

// routes returns the number of servers to which the server of this process is connected.
func (d *Discovery) routes() int {
	if d.server == nil {
		return 0
	}
	return d.server.running().NumRoutes()
}

const (
	coordinator   = 0 // the agent that all others join
	minRouteCheck = 5 * time.Second
	maxRouteCheck = time.Minute
)

// Address returns the address of the embedded server for other servers, "" without one.
func (d *Discovery) Address() string {
	if d.server == nil || d.server.running().ClusterAddr() == nil {
		return ""
	}
	return d.server.running().ClusterAddr().String()
}

// serverLog forwards the server's log.
type serverLog struct {
	log   *zap.Logger
	fatal chan string // the first fatal error
	last  *atomic.Value
}

func (s serverLog) Noticef(format string, v ...any) {
	s.log.Debug("server: " + fmt.Sprintf(format, v...))
}
func (s serverLog) Warnf(format string, v ...any) {
	s.log.Debug("server: " + fmt.Sprintf(format, v...))
}
func (s serverLog) Errorf(format string, v ...any) {
	text := fmt.Sprintf(format, v...)
	s.last.Store(text)
	s.log.Debug("server: " + text)
}
func (s serverLog) Fatalf(format string, v ...any) {
	text := fmt.Sprintf(format, v...)
	select {
	case s.fatal <- text:
	default:
	}
	s.log.Error("server: " + text)
}
func (s serverLog) Debugf(string, ...any) {}
func (s serverLog) Tracef(string, ...any) {}
