package traincmd

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"fspda/cli/command"
	"fspda/dist/link"
	"fspda/internal/lockfile"
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

// writePeers writes a file with an address for each agent, and returns the addresses. They are of
// this machine, and no process listens at them.
func (s *startFolder) writePeers(agents int) (addresses []string, err error) {
	text := "peers:\n"
	for i := range agents {
		l, err := listenAtFreePort()
		if err != nil {
			return nil, err
		}
		defer l.Close() // None of them is given twice.
		addresses = append(addresses, l.Addr().String())
		text += fmt.Sprintf("  %d: %s\n", i, l.Addr())
	}
	return addresses, command.CannotWrite(s.dir, "make room, or choose another folder with --out",
		os.WriteFile(s.peers(), []byte(text), 0o600))
}

// close removes the files, the lock and the empty folders.
func (s *startFolder) close() {
	_ = os.RemoveAll(s.certs())
	_ = os.Remove(s.config())
	_ = os.Remove(s.peers())
	_ = os.Remove(s.lock.Path()) // removed while it is held: another start makes a lock of its own
	_ = s.lock.Unlock()
	for _, path := range s.made {
		_ = os.Remove(path)
	}
}
