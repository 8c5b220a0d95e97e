package nats

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"strconv"
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
	Join      []string // HOST:PORT of other servers; it connects to the first that it can reach

	// Flat says that the server stays where it has joined: the agent above in the tree may leave.
	Flat bool

	check time.Duration // time after which it is said that no other server is reached; changed by tests
}

// embeddedServer is a running server. Servers form a tree: each is a leaf node of one that it joins.
// A server with leaf
// nodes must have a port for clients: it is bound to the loopback address and requires a token that
// never leaves the process.
type embeddedServer struct {
	token, listen string       // listen: where other servers connect
	trouble       atomic.Value // The last error in the server's log, a string.

	loop chan struct{} // Receives a value when the server waits, since it seemed to have joined itself.

	moving atomic.Bool // It is replaced by another one.

	mu   sync.Mutex
	now  *server.Server
	join []string // Where it joins others: HOST:PORT, the first that it can reach.
}

// InProcessConn implements InProcessConnProvider of the client library.
func (e *embeddedServer) InProcessConn() (net.Conn, error) { return e.running().InProcessConn() }

func (e *embeddedServer) running() *server.Server {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.now
}

// start starts a server and returns once it listens.
func (e *embeddedServer) start(o Options) error {
	host, port, err := discover.HostPort(o.Server.Listen)
	if err != nil {
		return err
	}
	port = cmp.Or(port, server.RANDOM_PORT)
	// The name and the run tell runs apart. TLS authenticates.
	leaves := server.LeafNodeOpts{Username: leafUser, Password: o.Run, Host: host, Port: port,
		Advertise: o.Server.Advertise, NoAdvertise: true,
		TLSConfig: o.TLS, TLSHandshakeFirst: o.TLS != nil, TLSTimeout: handshakeTime, AuthTimeout: 2 * handshakeTime,
		Compression: server.CompressionOpts{Mode: server.CompressionOff}}
	if len(e.join) > 0 {
		up := server.RemoteLeafOpts{NoRandomize: true, TLS: o.TLS != nil, TLSConfig: o.TLS, TLSTimeout: handshakeTime,
			TLSHandshakeFirst: o.TLS != nil, FirstInfoTimeout: handshakeTime * time.Second,
			Compression: server.CompressionOpts{Mode: server.CompressionOff}}
		for _, j := range e.join {
			if _, _, err := discover.HostPort(j); err != nil {
				return err
			}
			up.URLs = append(up.URLs, &url.URL{Scheme: "nats-leaf", Host: j, User: url.UserPassword(leafUser, o.Run)})
		}
		leaves.Remotes = []*server.RemoteLeafOpts{&up}
	}
	opts := &server.Options{ServerName: fmt.Sprintf("%s-%d-%x", o.Run, o.Self, randomID()), Host: "127.0.0.1",
		Port: server.RANDOM_PORT, Authorization: e.token, NoSigs: true, NoLog: true, LeafNode: leaves,
		PingInterval: leafPing, MaxPingsOut: 2, MaxPayload: 1 << 20, DisableShortFirstPing: true,
		NoSystemAccount: true}
	s, err := server.NewServer(opts)
	if err != nil {
		return fmt.Errorf("nats: cannot set up the server: %w", err)
	}
	log := serverLog{o.Log, make(chan string, 1), &e.trouble, e.loop}
	s.SetLogger(log, false, false)
	go s.Start()
	for began := time.Now(); !s.ReadyForConnections(time.Second); {
		select {
		case why := <-log.fatal:
			s.Shutdown()
			return fmt.Errorf("nats: the server cannot listen at %s (%s): is the port taken?", o.Server.Listen, why)
		default:
		}
		if time.Since(began) > startTime {
			s.Shutdown()
			return fmt.Errorf("nats: the server at %s has not started after %v: is the machine overloaded?",
				o.Server.Listen, startTime)
		}
	}
	e.now, e.listen = s, net.JoinHostPort(host, strconv.Itoa(opts.LeafNode.Port))
	return nil
}

// leafPing is the time between two pings of a connection between servers. It ends when two are not
// answered.
const leafPing = 5 * time.Second

// leafUser is the name by which servers log in to each other.
const leafUser = "fspda"

// handshakeTime bounds each step by which two servers connect, in seconds.
const handshakeTime = 5

// startTime bounds how long a server may take to listen on a loaded machine.
const startTime = time.Minute

func stop(s *server.Server) {
	s.Shutdown()
	s.WaitForShutdown()
}

// watchServer says now and then that the server of this process cannot join any other.
func (d *Discovery) watchServer() {
	if d.server == nil || len(d.opt.Server.Join) == 0 {
		return
	}
	joined, warned := time.Now(), time.Time{}
	if !d.opt.Server.Flat {
		d.background.Go(d.settle)
	}
	for d.open.Err() == nil {
		if d.neighbours() > 0 {
			joined = time.Now()
		} else if time.Since(joined) >= 2*d.opt.Server.check && time.Since(warned) >= warnAgain {
			warned = time.Now()
			d.warnUnjoined()
		}
		select {
		case <-time.After(d.opt.Server.check):
		case <-d.open.Done():
		}
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

// neighbours returns the number of servers to which the server of this process is connected.
func (d *Discovery) neighbours() int {
	if d.server == nil {
		return 0
	}
	return d.server.running().NumLeafNodes()
}

const (
	joinCheck = 5 * time.Second
	warnAgain = time.Minute
)

// Address returns the address of the embedded server for other servers, "" without one.
func (d *Discovery) Address() string {
	if d.server == nil {
		return ""
	}
	return d.server.listen
}

type serverLog struct {
	log   *zap.Logger
	fatal chan string // the first fatal error
	last  *atomic.Value
	loop  chan struct{}
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
	if strings.Contains(text, "Loop detected") {
		select {
		case s.loop <- struct{}{}:
		default:
		}
	}
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
