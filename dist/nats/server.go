package nats

import (
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	client "github.com/nats-io/nats.go"
	"go.uber.org/zap"
)

// Server configures the NATS server embedded in an agent's process. It accepts connections of the
// servers of other agents; its only client is in the same process.
type Server struct {
	Listen    string   // HOST:PORT for other servers; port 0 is any free one
	Advertise string   // HOST:PORT under which other servers reach it, if that differs
	Join      []string // HOST:PORT of some other servers; they announce the rest
}

// Credentials authenticate nodes to each other. The zero value authenticates nobody.
type Credentials struct {
	Routes *tls.Config // between embedded servers, at both ends
	// to a cluster whose URL begins with tls://; nil: the authorities of this machine, and no
	// certificate
	Client *tls.Config
	File   string // NATS credentials file (nkey and JWT) for the cluster

	agent *agentCert // set by ReadCredentials
}

// client returns the options of a connection to an existing cluster.
func (c Credentials) client(url string) (options []client.Option) {
	if c.Client != nil && strings.HasPrefix(url, "tls://") {
		options = append(options, client.Secure(c.Client))
	}
	if c.File != "" {
		options = append(options, client.UserCredentials(c.File))
	}
	return options
}

// embeddedServer is a running server. A server with routes must have a port for clients: it is
// bound to the loopback address and requires a token that never leaves the process.
type embeddedServer struct {
	*server.Server
	token string
}

// startServer starts a server and returns when it listens.
func startServer(o Options) (*embeddedServer, error) {
	host, port, err := hostPort(o.Server.Listen)
	if err != nil {
		return nil, err
	}
	if port == 0 {
		port = server.RANDOM_PORT
	}
	cluster := server.ClusterOpts{Name: "fspda-" + o.Run, Host: host, Port: port, Advertise: o.Server.Advertise,
		PoolSize: -1, Compression: server.CompressionOpts{Mode: server.CompressionOff}, ConnectRetries: 1 << 30}
	if t := o.TLS.Routes; t != nil {
		cluster.TLSConfig, cluster.TLSTimeout = t, 5
	}
	token := rand.Text()
	opts := &server.Options{ServerName: fmt.Sprintf("%s-%d-%x", o.Run, o.Self, newIncarnation()), Host: "127.0.0.1",
		Port: server.RANDOM_PORT, Authorization: token, NoSigs: true, NoLog: true, Cluster: cluster,
		MaxPayload: 1 << 20, DisableShortFirstPing: true, NoSystemAccount: true}
	for _, j := range o.Server.Join {
		if _, _, err := hostPort(j); err != nil {
			return nil, err
		}
		opts.Routes = append(opts.Routes, &url.URL{Scheme: "nats-route", Host: j})
	}
	s, err := server.NewServer(opts)
	if err != nil {
		return nil, fmt.Errorf("nats: cannot set up the server: %w", err)
	}
	log := serverLog{o.Log, make(chan string, 1)}
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
	return &embeddedServer{s, token}, nil
}

// startTime bounds how long a server may take to listen on a loaded machine.
const startTime = time.Minute

func (e *embeddedServer) stop() {
	e.Shutdown()
	e.WaitForShutdown()
}

// Address returns the address of the embedded server for other servers, "" without one.
func (n *Node) Address() string {
	if n.server == nil || n.server.ClusterAddr() == nil {
		return ""
	}
	return n.server.ClusterAddr().String()
}

func hostPort(address string) (string, int, error) {
	host, text, err := net.SplitHostPort(address)
	if err == nil {
		var port int
		if port, err = strconv.Atoi(text); err == nil && port >= 0 && port <= 65535 {
			return host, port, nil
		}
	}
	return "", 0, fmt.Errorf("nats: %q is not an address: write HOST:PORT", address)
}

// serverLog forwards the server's log.
type serverLog struct {
	log   *zap.Logger
	fatal chan string // the first fatal error
}

func (s serverLog) Noticef(format string, v ...any) {
	s.log.Debug("server: " + fmt.Sprintf(format, v...))
}
func (s serverLog) Warnf(format string, v ...any) {
	s.log.Debug("server: " + fmt.Sprintf(format, v...))
}
func (s serverLog) Errorf(format string, v ...any) {
	s.log.Debug("server: " + fmt.Sprintf(format, v...))
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
