package traincmd

import (
	"cmp"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"fspda/cli/command"
	"fspda/dist/discover"
	"fspda/dist/discover/nats"
	"fspda/dist/link"
	"fspda/train/process"
)

// connection says how an agent reaches the others.
type connection struct {
	join      []string
	peers     string // The file of the agents' addresses; empty: agents find each other over NATS.
	listen    string
	advertise string
	cluster   string // URL of a NATS cluster; empty: the agents' own servers
	creds     string
	certs     string
	insecure  bool
	packing   string
	direct    string // address at which other agents connect; empty after check: none
	elastic   bool   // any agent may leave

	compression link.Compression // set by check
	tls         link.Credentials // set by check
}

func (c *connection) add(fs *pflag.FlagSet) {
	fs.StringSliceVar(&c.join, "join", nil, "HOST:PORT of agent 0, or of any others; with --membership elastic of "+
		"several: of agents 0, 1 and so on, unless they listen elsewhere")
	fs.StringVar(&c.peers, "peers", "", "file with the address of each agent, in place of --join: YAML with the key "+
		"peers, below it lines RANK: HOST:PORT")
	fs.StringVar(&c.listen, "listen", "",
		"HOST:PORT where others find this agent; the default is the port of --join for agent 0, any port for others, "+
			"and with --peers the port that the file gives this agent")
	fs.StringVar(&c.advertise, "advertise", "", "HOST:PORT that others are told, where that is not --listen")
	fs.StringVar(&c.cluster, "nats", "", "URL of an existing NATS cluster, in place of --join and --listen")
	fs.StringVar(&c.creds, "nats-creds", "", "credentials file for that cluster (nkey and JWT)")
	fs.StringVar(&c.certs, "certs", "", "folder of the certificates that fspda certs made")
	fs.BoolVar(&c.insecure, "insecure", false, "no certificates: on one machine only")
	fs.StringVar(&c.packing, "packing", "none", "lossless compression of messages: none, s2 or zstd")
	fs.StringVar(&c.direct, "direct", "auto",
		"HOST:PORT where agents of higher ranks connect; auto is any free port on the host of --listen; off is "+
			"nowhere: NATS relays their connections")
}

// check completes the addresses and reads the certificates of an agent.
func (c *connection) check(run string, rank, agents int) error {
	err := c.checkAddresses()
	switch {
	case err != nil:
	case c.peers != "":
		err = c.checkPeers(rank, agents)
	case c.cluster != "":
		err = c.checkCluster()
	default:
		err = c.checkJoin(rank)
	}
	if err != nil {
		return err
	}
	if c.compression, err = link.ParseCompression(c.packing); err != nil {
		return command.UsageErrorf("%v", err)
	}
	if c.certs != "" {
		if c.tls, err = link.ReadCredentials(c.certs, run, rank); err != nil {
			return command.UsageErrorf("%v", err)
		}
	}
	return c.checkDirect()
}

// discover opens the Discovery by which this agent finds the others, and returns the address where
// others find this one. With a cluster of NATS servers there is none.
func (c *connection) discover(o nats.Options) (discover.Discovery, string, error) {
	if c.peers != "" {
		f, err := discover.OpenFile(c.peers, o.Agents, o.Log)
		return f, c.direct, err
	}
	o.Server = nats.Server{Listen: c.listen, Advertise: c.advertise, Join: c.join, Flat: c.elastic}
	o.URL = c.cluster
	o.TLS, o.Client, o.File = c.tls.Agents, c.tls.Client, c.creds
	d, err := nats.Open(o)
	if err != nil {
		return nil, "", err
	}
	return d, d.Address(), nil
}

// address returns a function that gives the address of each agent, as far as a file gives it.
func (c *connection) address(agents int) func(slot int) string {
	f, err := discover.OpenFile(c.peers, agents, nil)
	if c.peers == "" || err != nil {
		return func(int) string { return "" }
	}
	return f.Address
}

// checkPeers reads the file of addresses, and sets the one to listen at.
func (c *connection) checkPeers(rank, agents int) error {
	for _, flag := range []struct {
		name  string
		given bool
	}{{"join", len(c.join) > 0}, {"nats", c.cluster != ""}, {"nats-creds", c.creds != ""},
		{"advertise", c.advertise != ""}, {"direct", c.direct != "auto"}} {
		if flag.given {
			return command.UsageErrorf("--peers %s with --%s: the file says where the agents are, and NATS is not "+
				"used: leave --%s out", c.peers, flag.name, flag.name)
		}
	}
	f, err := discover.OpenFile(c.peers, agents, nil)
	if err != nil {
		return command.UsageErrorf("--peers: %v", err)
	}
	host, port, err := net.SplitHostPort(f.Address(rank))
	if err != nil {
		return err
	}
	if !c.insecure {
		host = "" // all addresses of this machine
	}
	c.listen = cmp.Or(c.listen, net.JoinHostPort(host, port))
	if _, _, err := discover.HostPort(c.listen); err != nil {
		return command.UsageErrorf("--listen: %v", err)
	}
	c.direct = c.listen
	var others []string
	for i := range agents {
		others = append(others, f.Address(i))
	}
	return c.checkCerts(others)
}

// checkAddresses refuses flags that are set and are no addresses.
func (c *connection) checkAddresses() error {
	type flag struct{ name, address string }
	flags := []flag{{"listen", c.listen}, {"advertise", c.advertise}}
	for _, address := range c.join {
		flags = append(flags, flag{"join", address})
	}
	if c.direct != "auto" && c.direct != "off" {
		flags = append(flags, flag{"direct", c.direct})
	}
	for _, f := range flags {
		if _, _, err := discover.HostPort(f.address); err != nil && f.address != "" {
			return command.UsageErrorf("--%s: %v", f.name, err)
		}
	}
	return nil
}

// checkJoin sets the addresses to join and to listen at.
func (c *connection) checkJoin(rank int) error {
	if len(c.join) == 0 {
		return command.UsageErrorf("--join is missing: give the address of agent 0, HOST:PORT, name a file of all " +
			"addresses with --peers, or a NATS cluster with --nats")
	}
	if c.elastic {
		return c.checkJoinAny(rank)
	}
	host, port, err := net.SplitHostPort(c.join[0])
	if err != nil {
		return err
	}
	local := "0.0.0.0"
	if c.insecure {
		local = host
	}
	if rank == process.Coordinator {
		c.listen = cmp.Or(c.listen, net.JoinHostPort(local, port))
		if len(c.join) == 1 {
			c.join = nil // its own address
		}
	} else if c.insecure {
		local = "127.0.0.1"
	}
	c.listen = cmp.Or(c.listen, net.JoinHostPort(local, "0"))
	return c.checkCerts(c.join)
}

// checkJoinAny sets the addresses of an agent that joins any of several. An agent that has one of
// the addresses joins only agents before it in the list, so that no two join each other.
func (c *connection) checkJoinAny(rank int) error {
	if len(c.join) < 2 {
		return command.UsageErrorf("--membership elastic with --join %s: agents find each other through the process "+
			"at that address, which may leave: give the addresses of at least two agents, HOST:PORT,HOST:PORT, name a "+
			"file of all addresses with --peers, or a NATS cluster with --nats", c.join[0])
	}
	all, local, port := c.join, "0.0.0.0", "0"
	if c.insecure {
		local = "127.0.0.1"
	}
	if rank < len(all) {
		host, its, err := net.SplitHostPort(all[rank])
		if err != nil {
			return err
		}
		if port = its; c.insecure {
			local = host
		}
	}
	c.listen = cmp.Or(c.listen, net.JoinHostPort(local, port))
	if err := c.checkCerts(all); err != nil {
		return err
	}
	if at := slices.IndexFunc(all, c.isOwn); at >= 0 {
		c.join = all[:at]
	}
	return nil
}

// isOwn reports whether this agent listens at an address.
func (c *connection) isOwn(address string) bool {
	host, port, err := net.SplitHostPort(address)
	_, own, bad := net.SplitHostPort(c.listen)
	if address == c.advertise || address == c.listen || err != nil || bad != nil || own != port {
		return address == c.advertise || address == c.listen
	}
	ips, err := net.LookupIP(host)
	if err != nil {
		return false // Another machine, which has no address now.
	}
	here, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	for _, ip := range ips {
		if ip.IsLoopback() || slices.ContainsFunc(here, func(a net.Addr) bool {
			n, ok := a.(*net.IPNet)
			return ok && n.IP.Equal(ip)
		}) {
			return true
		}
	}
	return false
}

// checkCerts refuses to run without certificates, unless that is said and all agents are on this
// machine.
func (c *connection) checkCerts(addresses []string) error {
	if c.insecure {
		return c.checkLoopback(addresses)
	}
	if c.certs == "" {
		return command.UsageErrorf("--certs is missing: name the folder of certificates that fspda certs made; if " +
			"all agents run on this machine, --insecure is enough")
	}
	return nil
}

// checkCluster refuses to use a cluster on another machine without certificates, unless that is
// said.
func (c *connection) checkCluster() error {
	if len(c.join) > 0 || c.listen != "" {
		return command.UsageErrorf("--nats names an existing cluster: leave --join and --listen out")
	}
	for _, text := range strings.Split(c.cluster, ",") {
		at, err := url.Parse(strings.TrimSpace(text))
		if err == nil && at.Port() != "" {
			_, _, err = discover.HostPort(at.Host)
		}
		if err != nil || at.Hostname() == "" {
			return command.UsageErrorf("--nats %q: write nats://HOST:PORT or tls://HOST:PORT", text)
		}
		if c.certs == "" && !c.insecure && !loopback(at.Hostname()) {
			return command.UsageErrorf("--nats %s without --certs: who reaches that server could read and change the "+
				"run; name the folder of certificates that fspda certs made, or add --insecure", text)
		}
	}
	return nil
}

// checkLoopback refuses to run without certificates where other machines could connect.
func (c *connection) checkLoopback(addresses []string) error {
	for _, a := range append([]string{c.listen}, addresses...) {
		if host, _, err := net.SplitHostPort(a); err != nil || !loopback(host) {
			return command.UsageErrorf("--insecure with %s: without certificates anybody could join there; use "+
				"127.0.0.1, or --certs", a)
		}
	}
	return nil
}

// checkDirect sets the address where other agents connect. Without certificates it must be a
// loopback address.
func (c *connection) checkDirect() error {
	switch c.direct {
	case "off":
		c.direct = ""
		return nil
	case "auto":
		c.direct = ""
		if host, _, err := net.SplitHostPort(c.listen); err == nil {
			c.direct = net.JoinHostPort(host, "0")
		} else if c.certs != "" {
			c.direct = "0.0.0.0:0"
		}
		return nil
	}
	host, _, err := net.SplitHostPort(c.direct)
	if err != nil {
		return command.UsageErrorf("--direct %q: write HOST:PORT, auto or off", c.direct)
	}
	if c.certs == "" && !loopback(host) {
		return command.UsageErrorf("--direct %s without --certs: anybody could connect there; use 127.0.0.1, "+
			"--certs, or off", c.direct)
	}
	return nil
}

// directHost is the host of --advertise, empty if there is none.
func (c *connection) directHost() string {
	host, _, _ := net.SplitHostPort(c.advertise)
	return host
}

// loopback reports whether a host is this machine and reached from nowhere else.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
