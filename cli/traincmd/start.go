package traincmd

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"fspda/cli/command"
	"fspda/dist/link"
	"fspda/internal/freeport"
	"fspda/internal/lockfile"
	"fspda/internal/wholefile"
	"fspda/train"
)

// certsValid is the time for which the certificates of a run on this machine are valid.
const certsValid = 10 * 365 * 24 * time.Hour

// startFolder holds the files that fspda up gives to the agents that it starts: the configuration
// and certificates. It is agents/up in the run folder, so that nothing is left elsewhere if this
// process is killed. Its lock keeps every other fspda up out of the run folder.
type startFolder struct {
	dir  string
	lock *flock.Flock
	made []string // folders that close removes if they are empty then
	// ports are the reserved ports of agents, which no other fspda up takes.
	ports []*freeport.Port
}

// openStart makes the folder and locks it.
func openStart(run string) (*startFolder, error) {
	dir := filepath.Join(run, "agents", "up")
	s := &startFolder{dir: dir, made: []string{dir, filepath.Dir(dir)}}
	if _, err := os.Stat(run); err != nil {
		s.made = append(s.made, run)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, &train.FolderError{Path: dir, Got: "cannot be created", Err: err,
			Hint: "choose another folder with --out"}
	}
	var ok bool
	var err error
	switch s.lock, ok, err = lockfile.TryLock(dir); {
	case err != nil:
		return nil, &train.FolderError{Path: dir, Got: "cannot be locked", Err: err}
	case !ok:
		return nil, &train.FolderError{Path: run, Got: "is in use by another fspda up",
			Hint: "wait for it, or choose another folder with --out"}
	}
	return s, nil
}

func (s *startFolder) config() string { return filepath.Join(s.dir, "config.yaml") }
func (s *startFolder) certs() string  { return filepath.Join(s.dir, "certs") }
func (s *startFolder) peers() string  { return filepath.Join(s.dir, "peers.yaml") }

func (s *startFolder) write(name string, c train.Config) error {
	err := os.RemoveAll(s.certs()) // an earlier start that was killed leaves certificates
	if err == nil {
		err = link.WriteCredentials(s.certs(), name, c.Agents, certsValid)
	}
	if err == nil {
		err = os.WriteFile(s.config(), c.YAML(), 0o600)
	}
	return command.CannotWrite(s.dir, "make room, or choose another folder with --out", err)
}

// port reserves a port of this machine for an agent, until the run ends.
func (s *startFolder) port() (*freeport.Port, error) {
	p, err := freeport.Reserve()
	if err != nil {
		return nil, fmt.Errorf("no port for an agent: %w: %s", err, cmp.Or(wholefile.LimitHint(err),
			"end programs that use them"))
	}
	s.ports = append(s.ports, p)
	return p, nil
}

// writePeers writes a file with an address of this machine for each agent, and returns the
// addresses.
func (s *startFolder) writePeers(agents int) (addresses []string, err error) {
	text := "peers:\n"
	for i := range agents {
		p, err := s.port()
		if err != nil {
			return nil, err
		}
		addresses = append(addresses, p.Address())
		text += fmt.Sprintf("  %d: %s\n", i, p.Address())
	}
	return addresses, command.CannotWrite(s.dir, "make room, or choose another folder with --out",
		os.WriteFile(s.peers(), []byte(text), 0o600))
}

// close removes the files, the lock and the empty folders, and gives up the ports.
func (s *startFolder) close() {
	_ = os.RemoveAll(s.certs())
	_ = os.Remove(s.config())
	_ = os.Remove(s.peers())
	_ = os.Remove(s.lock.Path()) // removed while it is held: another start makes a lock of its own
	_ = s.lock.Unlock()
	for _, path := range s.made {
		_ = os.Remove(path)
	}
	for _, p := range s.ports {
		p.Close()
	}
}
