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

// Server is the NATS server inside an agent's process. It listens for the servers of other agents
// alone: the one client that it has is in the process itself.
type Server struct {
	Listen    string   // HOST:PORT for other servers; port 0 is any that is free
	Advertise string   // HOST:PORT by which others reach it, where that is another one
	Join      []string // HOST:PORT of some others; the rest is heard of through them
}

// Credentials are how nodes prove to each other who they are. Nil: they do not.
type Credentials struct {
	Routes *tls.Config // between the servers inside the agents' processes, at both ends
	// towards a cluster whose URL begins with tls://; nil: what this machine trusts, and no
	// certificate
	Client *tls.Config
	File   string // credentials for it: nkey and JWT

	member *member // of ReadCredentials
}

// client is what a connection to a cluster of others takes of them.
func (c Credentials) client(url string) (options []client.Option) {
	if c.Client != nil && strings.HasPrefix(url, "tls://") {
		options = append(options, client.Secure(c.Client))
	}
	if c.File != "" {
		options = append(options, client.UserCredentials(c.File))
	}
	return options
}

// embedded is the running server. A server with routes cannot do without a port for clients: it is
// one of this machine alone, and opens to nobody who does not have the token, which does not leave
// the process.
type embedded struct {
	*server.Server
	token string
}

// startServer starts it, and returns when it listens.
func startServer(o Options) (*embedded, error) {
	host, port, err := hostPort(o.Server.Listen)
	if err != nil {
		return nil, err
	}
	if port == 0 {
		port = server.RANDOM_PORT
	}
	cluster := server.ClusterOpts{Name: "fspda-" + o.Run, Host: host, Port: port, Advertise: o.Server.Advertise,
		PoolSize:    -1,
		Compression: server.CompressionOpts{Mode: server.CompressionOff}, ConnectRetries: 1 << 30}
	if t := o.TLS.Routes; t != nil {
		cluster.TLSConfig, cluster.TLSTimeout = t, 5
	}
	token := rand.Text()
	opts := &server.Options{ServerName: fmt.Sprintf("%s-%d-%x", o.Run, o.Self, newLife()), Host: "127.0.0.1",
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
	return &embedded{s, token}, nil
}

// startTime is how long a server may take to listen, on a machine that has much else to do.
const startTime = time.Minute

func (e *embedded) stop() {
	e.Shutdown()
	e.WaitForShutdown()
}

// Address is where other servers find the one inside this process, or "" where there is none.
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
	return "", 0, fmt.Errorf("nats: %q is no address: write HOST:PORT", address)
}

// serverLog passes on what the server says of trouble.
type serverLog struct {
	log   *zap.Logger
	fatal chan string // the first thing that it cannot go on with
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
