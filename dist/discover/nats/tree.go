package nats

import (
	"context"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/zap"

	"fspda/dist/discover"
)

// Every server first joins where its user says, which is agent 0 in most runs. With many agents it
// then goes to the server of the agent above it in the tree of agents, so that no agent has a
// connection for each other one. While that one cannot be reached, it stays with agent 0.

const (
	minSettle  = 250 * time.Millisecond // The time to the first try to go to the agent above.
	maxSettle  = time.Minute            // The longest time between two tries.
	lookAgain  = 500 * time.Millisecond // The time between two looks at the connection.
	lingerTime = 3 * time.Second        // The longest time for which a server that is not needed stays.
	askServer  = 5 * time.Second        // The time for an answer of the agent above.
	probeTime  = 2 * time.Second        // The time to reach one address of it.
)

// settle brings the server below the one of the agent above, now and whenever it is with agent 0.
func (d *Discovery) settle() {
	above := discover.Parent(d.opt.Self)
	delay, again, next := minSettle, minSettle, time.Now().Add(minSettle)
	below := false // It was below that one.
	for {
		var to []string // Where the server is to join.
		select {
		case <-d.open.Done():
			return
		case <-d.server.loop: // An earlier connection of it is not known to have ended.
			if !d.rest(again) {
				return
			}
			to, again = d.server.join, min(2*again, maxSettle)
		case <-time.After(lookAgain):
			at := d.server.joined()
			if at != above && below {
				d.endRelays() // What was under way over that server is lost.
			}
			if below = at == above; below {
				delay, again, next = minSettle, minSettle, time.Now().Add(d.opt.Server.check/2)
			}
			if at != 0 || below || time.Now().Before(next) {
				break
			}
			if address := d.serverOf(above); address != "" {
				to = append([]string{address}, d.opt.Server.Join...)
			}
			delay = min(2*delay, maxSettle)
			next = time.Now().Add(delay)
		}
		for to != nil {
			err := d.server.restart(d.opt, to)
			if err == nil {
				d.endRelays()
				break
			}
			d.log.Warn("the NATS server of this agent does not start; trying again", zap.Error(err))
			if !d.rest(time.Second) {
				return
			}
		}
	}
}

// linger waits a while for the servers that have joined this one, since agent 0 tells them of the end
// of a run over it.
func (d *Discovery) linger() {
	if d.server == nil || d.opt.Self == 0 {
		return
	}
	for end := time.Now().Add(lingerTime); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		all, err := d.server.running().Leafz(nil)
		if err != nil || !slices.ContainsFunc(all.Leafs, func(l *server.LeafInfo) bool { return !l.IsSpoke }) {
			return
		}
	}
}

// rest waits, and returns false when the agent closes.
func (d *Discovery) rest(wait time.Duration) bool {
	select {
	case <-time.After(wait):
		return true
	case <-d.open.Done():
		return false
	}
}

// serverOf returns an address at which the server of another agent answers now; empty: there is
// none.
func (d *Discovery) serverOf(agent int) string {
	ctx, cancel := context.WithTimeout(d.open, askServer)
	defer cancel()
	o, err := d.peers[agent].ask(ctx)
	if err != nil {
		return ""
	}
	for _, a := range o.Server {
		if c, err := (&net.Dialer{Timeout: probeTime}).DialContext(d.open, "tcp", a); err == nil {
			_ = c.Close()
			return a
		}
	}
	return ""
}

// offer returns where this agent and its server accept connections.
func (d *Discovery) offer() offer {
	o := offer{Addresses: d.agent.Addresses()}
	if d.server == nil || d.opt.Self > 0 && d.server.joined() != discover.Parent(d.opt.Self) {
		return o // The server may move.
	}
	if d.opt.Server.Advertise != "" {
		o.Server = []string{d.opt.Server.Advertise}
		return o
	}
	host, port, _ := net.SplitHostPort(d.server.listen) // It listens there.
	if ip := net.ParseIP(host); host != "" && (ip == nil || !ip.IsUnspecified()) {
		o.Server = []string{d.server.listen}
		return o
	}
	for _, a := range o.Addresses {
		host, _, _ := net.SplitHostPort(a) // The link has joined it.
		if a = net.JoinHostPort(host, port); !slices.Contains(o.Server, a) {
			o.Server = append(o.Server, a)
		}
	}
	return o
}

// joined returns the agent whose server this one has joined; -1: none.
func (e *embeddedServer) joined() int {
	all, err := e.running().Leafz(nil)
	if err != nil {
		return -1
	}
	for _, l := range all.Leafs {
		name := strings.Split(l.Name, "-") // The run, the agent, and a random number.
		if agent, err := strconv.Atoi(name[max(0, len(name)-2)]); err == nil && l.IsSpoke {
			return agent
		}
	}
	return -1
}

// restart replaces the server by one at the same address, which joins another one. It is a new one
// for the others: the old one would take it for a loop if they told it of its earlier connection.
func (e *embeddedServer) restart(o Options, join []string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.moving.Store(true)
	defer e.moving.Store(false)
	stop(e.now)
	e.join = join
	if e.listen != "" {
		o.Server.Listen = e.listen
	}
	return e.start(o)
}
