package nats

import (
	"testing"
	"time"

	"fspda/dist/discover"
)

// Many servers, which all join agent 0 first, make a tree in which no server has more connections
// than branches, and relay between all agents. While an agent is away those below it are with
// agent 0, and when it is back they return.
func TestServersMakeATree(t *testing.T) {
	const agents = 2*discover.Branches + 3
	withTLS := certified(t, t.TempDir(), agents)
	m := openMesh(t, agents, withTLS)
	settled := func() bool {
		for i, d := range m {
			if i > 0 && d.server.joined() != discover.Parent(i) {
				return false
			}
			if d.neighbours() > discover.Branches+1 {
				return false
			}
		}
		return true
	}
	await := func(what string, holds func() bool) {
		t.Helper()
		for ctx := testContext(t); !holds(); time.Sleep(20 * time.Millisecond) {
			if ctx.Err() != nil {
				t.Fatalf("waited in vain until %s", what)
			}
		}
	}
	await("the servers make a tree", settled)
	m.checkPair(t, agents-1, 0)
	m.checkPair(t, agents-1, 1)
	m.checkPair(t, discover.Branches+1, 2)
	m.checkPair(t, agents-1, 7)
	m[1].Close()
	await("those below agent 1 are with agent 0", func() bool {
		return m[discover.Branches+1].server.joined() == 0
	})
	m.checkPair(t, agents-1, 0)
	m.checkPair(t, discover.Branches+1, 0)
	o := options(t, 1, agents)
	withTLS(&o)
	o.Server.Join = []string{m[0].Address()}
	m[1] = open(t, o)
	await("those below agent 1 return", settled)
	m.checkPair(t, agents-1, 0)
	m.checkPair(t, discover.Branches+1, 1)
}
