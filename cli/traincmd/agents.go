package traincmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"fspda/cli/command"
	"fspda/dist"
	"fspda/internal/bounded"
	"fspda/internal/lockfile"
	"fspda/internal/wholefile"
	"fspda/train"
	"fspda/train/membership/agreement"
	"fspda/train/process"
)

// Files in the folder of an agent of an elastic run, by which other programs of its machine see the
// members, and drop one.
const (
	statusFile = "status.json"
	dropFile   = "drop"
)

const (
	statusInterval = time.Second
	statusLasts    = 10 * time.Second // An older status is of a process that hangs or has ended.
	maxStatus      = 1 << 20
)

// membersStatus is the members of a run as the process of one of them sees them.
type membersStatus struct {
	Time   time.Time `json:"time"`
	Rank   int       `json:"rank"`   // The agent whose process says so.
	Leader int       `json:"leader"` // -1: none, since no majority of the members is heard.
	Writer int       `json:"writer"` // The agent whose process evaluates the run and writes its folder.

	Agents []slotStatus `json:"agents"`
}

// slotStatus is the state of a slot.
type slotStatus struct {
	Slot      int     `json:"slot"`
	Member    bool    `json:"member"`
	Address   string  `json:"address,omitempty"`
	Host      string  `json:"host,omitempty"` // The machine, of a process that keeps its folder here.
	Lives     int     `json:"lives"`          // The number of agents that the slot has had before.
	Since     int     `json:"since"`          // The iteration from which on it is, or is not, a member.
	Iteration int     `json:"iteration"`
	State     string  `json:"state"` // working, waiting for an agent, silent, ended.
	SilentS   float64 `json:"silent_s"`
}

// membersTeller tells other programs of the members, and takes their requests to drop one.
type membersTeller struct {
	group   *agreement.Group
	net     process.Network
	rank    int
	folder  string
	address func(slot int) string
	log     *zap.Logger
}

// tell tells of the members until ctx ends.
func (m *membersTeller) tell(ctx context.Context) {
	for ctx.Err() == nil {
		text, err := json.Marshal(m.status())
		if err == nil {
			err = wholefile.Write(filepath.Join(m.folder, statusFile), text)
		}
		if err != nil {
			m.log.Debug("the state of the members was not written", zap.Error(err))
		}
		select {
		case <-time.After(statusInterval):
		case <-ctx.Done():
		}
	}
	_ = os.Remove(filepath.Join(m.folder, statusFile)) // An old one does no harm.
}

// takeDrops takes requests to drop an agent until ctx ends.
func (m *membersTeller) takeDrops(ctx context.Context) {
	for ctx.Err() == nil {
		m.takeDrop(ctx)
		select {
		case <-time.After(statusInterval):
		case <-ctx.Done():
		}
	}
}

// agreeTimeout is how long a drop may wait for a majority.
const agreeTimeout = 15 * time.Second

// takeDrop drops the agent that a file names.
func (m *membersTeller) takeDrop(ctx context.Context) {
	path := filepath.Join(m.folder, dropFile)
	text, err := bounded.File(path, 100)
	if err != nil {
		return
	}
	_ = os.Remove(path) // Once is enough.
	slot, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err == nil && (slot < 0 || slot >= len(m.group.Status().Lives)) {
		err = fmt.Errorf("agent %d is none of the run", slot)
	}
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, agreeTimeout)
		err = m.group.Drop(ctx, slot)
		cancel()
	}
	m.log.Warn("asked to drop an agent", zap.Int("agent", slot), zap.Error(err))
}

func (m *membersTeller) status() membersStatus {
	s := m.group.Status()
	host, _ := os.Hostname()
	out := membersStatus{Time: time.Now(), Rank: m.rank, Leader: s.Leader, Writer: s.Writer}
	for i, lives := range s.Lives {
		a := slotStatus{Slot: i, Lives: lives, Member: slices.Contains(s.Members, i), Address: m.address(i)}
		for _, e := range s.Changes {
			if slices.Contains(e.Left, i) || slices.Contains(e.Joined, i) {
				a.Since = e.At
			}
		}
		at := m.net.Position(i)
		a.Iteration, a.State = at.T, phaseNames[at.Phase]
		if at.Phase == dist.Waiting {
			a.State = fmt.Sprintf("waits for agent %d", at.Awaits)
		}
		if i == m.rank {
			a.Host = host
		} else {
			a.SilentS = m.net.SilentFor(i).Round(100 * time.Millisecond).Seconds()
		}
		if slices.Contains(s.Silent, i) {
			a.State = "silent"
		}
		out.Agents = append(out.Agents, a)
	}
	return out
}

var phaseNames = map[dist.Phase]string{dist.Idle: "idle", dist.Working: "works", dist.Waiting: "waits"}

func newAgents() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "agents RUN",
		Short: "Show the members of a run whose agents die and come",
		Long: `Show the members of a run with --membership elastic, as a process on this machine sees them: for each
slot whether it has an agent and from which iteration on, its address, its iteration, and whether it works, waits or is
silent.
The leader orders the decisions of the members; the writer evaluates the run and writes its folder.`,
		Example: `  fspda agents runs/digits
  fspda agents drop runs/digits 3`,
		Args: command.Arguments(1, 1, "the folder of a run"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := readStatus(args[0], -1)
			if err != nil {
				return err
			}
			if asJSON {
				e := json.NewEncoder(cmd.OutOrStdout())
				e.SetIndent("", "  ")
				return e.Encode(s)
			}
			return s.print(cmd.OutOrStdout())
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.AddCommand(&cobra.Command{
		Use:   "drop RUN N",
		Short: "Let the other members go on without agent N",
		Long: `Let the other members go on without agent N, as if it had fallen silent. A process of another member, which
keeps its folder on this machine, passes the request on. An agent that is dropped and lives joins again as a new one.`,
		Example: `  fspda agents drop runs/digits 3`,
		Args:    command.Arguments(2, 2, "the folder of a run and the number of an agent"),
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := strconv.Atoi(args[1])
			if err != nil || n < 0 {
				return command.UsageErrorf("agents drop %s: expected the number of an agent, from 0", args[1])
			}
			return dropAgent(cmd.Context(), args[0], n, cmd.OutOrStdout())
		},
	})
	return cmd
}

// readStatus reads the newest state of the members in a run folder, of the process of another agent
// than one. The newest is the file written last, since the clock of a process may be wrong.
func readStatus(run string, except int) (newest membersStatus, err error) {
	files, err := filepath.Glob(filepath.Join(run, "agents", "[0-9]*", statusFile))
	if err != nil {
		return newest, err
	}
	var written time.Time
	hosts := map[int]string{}
	for _, path := range files {
		if held, known := lockfile.Held(filepath.Dir(path)); known && !held {
			continue // Its process has ended.
		}
		text, err := bounded.File(path, maxStatus)
		info, statErr := os.Stat(path)
		if errors.Is(err, os.ErrNotExist) || errors.Is(statErr, os.ErrNotExist) {
			continue
		}
		var s membersStatus
		if err = errors.Join(err, statErr); err == nil {
			err = json.Unmarshal(text, &s)
		}
		if err != nil {
			return newest, fmt.Errorf("the state of the members in %s cannot be read: %w", path, err)
		}
		for _, a := range s.Agents {
			if a.Host != "" {
				hosts[a.Slot] = a.Host
			}
		}
		if s.Rank != except && info.ModTime().After(written) {
			newest, written = s, info.ModTime()
		}
	}
	if time.Since(written) > statusLasts {
		return newest, &train.FolderError{Path: run,
			Got:  "has no process of a run with --membership elastic on this machine",
			Hint: "name the folder that such a process was given with --out, while it runs"}
	}
	for i := range newest.Agents {
		newest.Agents[i].Host = hosts[i]
	}
	return newest, nil
}

func (s *membersStatus) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "slot\taddress\thost\tmember\tsince\titeration\tstate\t")
	for _, a := range s.Agents {
		member, state := "yes", a.State
		if !a.Member {
			member, state = "no", "absent"
		}
		if a.Slot == s.Leader {
			state += ", leader"
		}
		if a.Slot == s.Writer {
			state += ", writer"
		}
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%d\t%d\t%s\t\n", a.Slot, a.Address, a.Host, member, a.Since, a.Iteration, state)
	}
	if s.Leader < 0 {
		fmt.Fprintln(t, "no majority of the members is heard: they wait")
	}
	return t.Flush()
}

// dropTimeout is the time in which the members must agree that an agent leaves.
const dropTimeout = 30 * time.Second

// dropAgent asks the process of another member to drop an agent, and waits until it has left.
func dropAgent(ctx context.Context, run string, slot int, w io.Writer) error {
	s, err := readStatus(run, slot)
	if err != nil {
		return err
	}
	if slot >= len(s.Agents) || !s.Agents[slot].Member {
		return command.UsageErrorf("agents drop %d: it is no member of the run: see fspda agents %s", slot, run)
	}
	lives := s.Agents[slot].Lives
	path := filepath.Join(run, "agents", fmt.Sprintf("%03d", s.Rank), dropFile)
	if err := wholefile.Write(path, []byte(strconv.Itoa(slot))); err != nil {
		return err
	}
	for begin := time.Now(); time.Since(begin) < dropTimeout; {
		select {
		case <-time.After(statusInterval / 4):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if s, err := readStatus(run, slot); err == nil && s.Agents[slot].Lives > lives {
			_, err := fmt.Fprintf(w, "agent %d has left\n", slot)
			return err
		}
	}
	return fmt.Errorf("agent %d is still a member after %v: no majority of the members agrees, or too few would "+
		"remain: see the log of agent %d", slot, dropTimeout, s.Rank)
}
