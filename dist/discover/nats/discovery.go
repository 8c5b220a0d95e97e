package nats

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	client "github.com/nats-io/nats.go"
	"go.uber.org/zap"

	"fspda/dist/discover"
)

// Options configure a [Discovery].
type Options struct {
	Run    string // The name of the run. See discover.CheckRun.
	Self   int    // The rank of the agent.
	Agents int    // The number of agents.

	Server Server // The server that is embedded in this process. It is not used with URL.
	URL    string // The address of an existing cluster.

	// TLS is the configuration of connections between embedded servers, at both ends. Without it
	// nobody is authenticated.
	TLS *tls.Config
	// Client is the configuration of a connection to a cluster whose URL begins with tls://.
	// Without it the authorities of this machine are trusted, and the agent presents no
	// certificate.
	Client *tls.Config
	// File is the name of a NATS credentials file (nkey and JWT) for the cluster.
	File string
	Log  *zap.Logger
}

// Discovery finds agents over NATS, and relays connections between them.
type Discovery struct {
	opt    Options
	log    *zap.Logger
	server *embeddedServer // nil: an existing cluster
	conn   *client.Conn
	peers  []*peer // The other agents by rank; nil for this agent.

	agent      discover.Agent  // Set by Start.
	open       context.Context // Ends when the agent closes.
	cancel     context.CancelFunc
	background sync.WaitGroup

	versionGrace     time.Duration // Tests change it.
	dropped, trouble atomic.Uint64
}

// Open connects to the server.
func Open(o Options) (*Discovery, error) {
	if err := discover.CheckRun(o.Run); err != nil {
		return nil, err
	}
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	o.Server.check = cmp.Or(o.Server.check, joinCheck)
	d := &Discovery{opt: o, log: o.Log, peers: make([]*peer, o.Agents), versionGrace: versionGrace}
	d.open, d.cancel = context.WithCancel(context.Background())
	for i := range d.peers {
		if i != o.Self {
			d.peers[i] = &peer{discovery: d, id: i, offers: make(chan offer, 1)}
		}
	}
	if err := d.connect(); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

func (d *Discovery) connect() (err error) {
	url, token := d.opt.URL, rand.Text()
	options := []client.Option{client.Name(fmt.Sprintf("fspda %s agent %d", d.opt.Run, d.opt.Self)), client.NoEcho(),
		client.MaxReconnects(-1), client.ReconnectWait(100 * time.Millisecond), client.ReconnectBufSize(8 << 20),
		client.ErrorHandler(d.onConnError),
		client.DisconnectErrHandler(func(_ *client.Conn, err error) {
			if err != nil && (d.server == nil || !d.server.moving.Load()) {
				d.log.Warn("lost the connection to the NATS server; reconnecting", zap.Error(err))
			}
		})}
	if url == "" {
		embedded := &embeddedServer{token: token, loop: make(chan struct{}, 1), join: d.opt.Server.Join}
		if err := embedded.start(d.opt); err != nil {
			return err
		}
		d.server = embedded
		options = append(options, client.InProcessServer(d.server), client.Token(token))
	} else {
		options = append(options, d.opt.client()...)
	}
	d.conn, err = client.Connect(url, options...)
	if d.server == nil && isUnreachable(err) {
		d.log.Warn("the NATS server cannot be reached; waiting for it", zap.String("server", url), zap.Error(err))
		d.conn, err = client.Connect(url, append(options, client.RetryOnFailedConnect(true))...)
	}
	if err != nil {
		return fmt.Errorf("nats: cannot connect to the server %s: %w: are its address and the credentials right?",
			cmp.Or(url, "of this process"), err)
	}
	return nil
}

// client returns the options of a connection to an existing cluster.
func (o *Options) client() (options []client.Option) {
	if o.Client != nil && strings.HasPrefix(o.URL, "tls://") {
		options = append(options, client.Secure(o.Client))
	}
	if o.File != "" {
		options = append(options, client.UserCredentials(o.File))
	}
	return options
}

// isUnreachable reports whether no server listens, or the network fails.
func isUnreachable(err error) bool {
	var network *net.OpError
	return errors.Is(err, client.ErrNoServers) || errors.As(err, &network)
}

// onConnError logs an error of the client library, such as packets dropped because this process was
// too slow. They end a relayed connection.
func (d *Discovery) onConnError(_ *client.Conn, _ *client.Subscription, err error) {
	d.trouble.Add(1)
	d.log.Debug("NATS connection error", zap.Error(err))
}

func (d *Discovery) Start(ctx context.Context, a discover.Agent) error {
	d.agent = a
	context.AfterFunc(ctx, d.cancel)
	sub, err := d.conn.Subscribe(subject(d.opt.Run, d.opt.Self, "*"), d.receive)
	if err != nil {
		return fmt.Errorf("nats: cannot subscribe: %w", err)
	}
	if err := sub.SetPendingLimits(-1, 256<<20); err != nil {
		return err
	}
	d.background.Go(d.watchServer)
	if d.conn.IsConnected() {
		return d.conn.FlushTimeout(10 * time.Second)
	}
	return nil // The subscription begins when the server can be reached.
}

func (d *Discovery) Addresses(ctx context.Context, agent int) ([]string, error) {
	o, err := d.peers[agent].ask(ctx)
	return o.Addresses, err
}

func (d *Discovery) Relay(agent int) (net.Conn, error) {
	outer, inner := net.Pipe()
	d.peers[agent].startRelay(randomID(), inner)
	return outer, nil
}

func (d *Discovery) Stats() discover.Stats {
	return discover.Stats{Dropped: d.dropped.Load(), Trouble: d.trouble.Load()}
}

func (d *Discovery) Close() {
	d.cancel()
	d.endRelays()
	d.background.Wait()
	if d.conn != nil {
		_ = d.conn.FlushTimeout(time.Second)
		d.conn.Close()
	}
	d.linger()
	if d.server != nil {
		stop(d.server.running())
	}
}

// endRelays ends all relayed connections.
func (d *Discovery) endRelays() {
	for _, p := range d.peers {
		if p != nil {
			p.relay.end()
		}
	}
}
