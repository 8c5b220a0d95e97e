package discover

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/goccy/go-yaml"
	"go.uber.org/zap"

	"fspda/internal/bounded"
)

// File is a Discovery by a YAML file that lists the address of each agent of a run:
//
//	peers:
//	  0: 10.0.0.1:4700
//	  1: node-b:4700
//
// The file is read again whenever an address is needed, so that an agent can move to another
// address while the others run. Nothing is relayed: each agent must be able to reach all agents of
// lower ranks.
type File struct {
	path   string
	agents int
	log    *zap.Logger

	mu      sync.Mutex
	peers   []string // By rank, when the file was last read without an error.
	trouble atomic.Uint64
}

// OpenFile reads the file. It must list exactly the agents 0 to agents-1, each at another address.
func OpenFile(path string, agents int, log *zap.Logger) (*File, error) {
	f := &File{path: path, agents: agents, log: log}
	if f.log == nil {
		f.log = zap.NewNop()
	}
	var err error
	f.peers, err = f.read()
	return f, err
}

func (f *File) Address(agent int) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.peers[agent]
}

// Start implements [Discovery]. Nobody asks this agent for its address.
func (f *File) Start(context.Context, Agent) error { return nil }

// Addresses implements [Discovery]. If the file cannot be read now, it returns the address that the
// file had before.
func (f *File) Addresses(_ context.Context, agent int) ([]string, error) {
	peers, err := f.read()
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		if f.trouble.Add(1) == 1 {
			f.log.Warn("the list of addresses cannot be read again; the earlier one is used", zap.Error(err))
		}
		peers = f.peers
	}
	f.peers = peers
	return peers[agent : agent+1], nil
}

func (f *File) Relay(agent int) (net.Conn, error) {
	return nil, fmt.Errorf("discover: %s has no other address of agent %d: does it run and listen there, and can this "+
		"machine reach it?", f.path, agent)
}

func (f *File) Stats() Stats { return Stats{Trouble: f.trouble.Load()} }

func (f *File) Close() {}

// read reads the file and returns the addresses by rank.
func (f *File) read() ([]string, error) {
	text, err := bounded.YAMLFile(f.path)
	if err == nil {
		var peers []string
		if peers, err = parsePeers(text, f.agents); err == nil {
			return peers, nil
		}
	}
	return nil, fmt.Errorf("discover: the list of addresses %s: %w", f.path, err)
}

// parsePeers parses the text of a file for a number of agents. The error lists all faults.
func parsePeers(text []byte, agents int) ([]string, error) {
	const form = "expected YAML of the form\n\n  peers:\n    0: HOST:PORT\n    1: HOST:PORT"
	if err := bounded.Nesting(text); err != nil {
		return nil, err
	}
	var tree yaml.MapSlice
	err := yaml.UnmarshalWithOptions(text, &tree, yaml.UseOrderedMap(),
		yaml.AllowDuplicateMapKey()) // said below, with both addresses
	if err != nil {
		return nil, fmt.Errorf("%s: %w", form, err)
	}
	if len(tree) != 1 || tree[0].Key != "peers" {
		return nil, errors.New(form)
	}
	list, ok := tree[0].Value.(yaml.MapSlice)
	if !ok {
		return nil, errors.New(form)
	}
	peers := make([]string, agents)
	var faults []error
	for _, entry := range list {
		if err := addPeer(peers, fmt.Sprint(entry.Key), fmt.Sprint(entry.Value)); err != nil {
			faults = append(faults, err)
		}
	}
	for rank := range peers {
		if !slices.ContainsFunc(list, func(e yaml.MapItem) bool { return e.Key == strconv.Itoa(rank) }) {
			faults = append(faults, fmt.Errorf("agent %d is missing: the run has %d agents, 0 to %d", rank, agents,
				agents-1))
		}
	}
	return peers, errors.Join(faults...)
}

// addPeer checks an entry of a file and adds it to the addresses.
func addPeer(peers []string, key, address string) error {
	rank, err := strconv.Atoi(key)
	if err != nil || rank < 0 || rank >= len(peers) || key != strconv.Itoa(rank) {
		return fmt.Errorf("%q is no agent of the run: expected ranks from 0 to %d", clip(key), len(peers)-1)
	}
	host, port, err := HostPort(address)
	switch ip := net.ParseIP(host); {
	case err != nil || host == "" || len(address) > maxAddressLen:
		return fmt.Errorf("agent %d is at %q: write HOST:PORT", rank, clip(address))
	case port == 0:
		return fmt.Errorf("agent %d is at %s: others cannot know which port that is: write the port at which it "+
			"listens", rank, address)
	case ip != nil && ip.IsUnspecified():
		return fmt.Errorf("agent %d is at %s, which is every address of a machine: write the one at which others "+
			"reach it", rank, address)
	case peers[rank] != "":
		return fmt.Errorf("agent %d is listed twice, at %s and at %s", rank, peers[rank], address)
	case slices.Contains(peers, address):
		return fmt.Errorf("agents %d and %d have the same address, %s: give each agent a port of its own",
			slices.Index(peers, address), rank, address)
	}
	peers[rank] = address
	return nil
}

// maxAddressLen bounds the length of an address.
const maxAddressLen = 300
