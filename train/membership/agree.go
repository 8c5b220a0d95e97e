package membership

import (
	"context"
	"errors"
)

// ErrDropped says that the members go on without the local agent, which may join again.
var ErrDropped = errors.New("membership: the other members go on without this agent")

// View is the state of the members on which the processes of a run have agreed.
type View struct {
	Epochs []Epoch
	Lives  []int // How many agents each slot has had before the present one, or before the next one.
	// Pending is the number of changes under way, whose iteration is not known yet.
	Pending int
	Moved   int // The iteration from which on Writer is that agent.
	Writer  int // The agent whose process evaluates the run and writes its folder.
}

// Agreement lets the processes of a run agree on the changes of its members. Package agreement has an
// implementation.
type Agreement interface {
	// Joined waits until the local agent is a member, and returns the iteration from which on it is,
	// and the view at this time.
	Joined(ctx context.Context) (at int, v View, err error)
	// View returns the state of the members, as far as this process knows.
	View(ctx context.Context) (View, error)
	// Start tells the local agent of the changes so far, and from then on of each further one.
	Start(ctx context.Context, l Local) error
	// Drop lets an agent leave, as if it were silent, and returns once a majority has agreed.
	Drop(ctx context.Context, agent int) error
}

// Local is the agent of this process. Its methods are called one at a time, and must return soon.
type Local interface {
	// Leave says that an agent leaves, and which life of its slot comes next. The local agent uses no
	// further message of it, and waits in the next exchange with it. Leave returns that exchange or an
	// earlier one, from which on all fail.
	Leave(agent, life int) (idle Exchange)
	// Hold keeps the local agent from the first iteration that it has not entered and at which the
	// members may change, and returns it.
	Hold() (reach int)
	// Lead returns the number of iterations that pass while a new member gets the state of the
	// donor.
	Lead() int
	// Linked reports whether the process has been connected to all members to which it needs a
	// link, so that they receive nothing more of its earlier process. Until then it is asked
	// again.
	Linked() bool
	// Seen returns the exchanges to which agents have come: the local one, and those whose
	// messages or reports are there.
	Seen() map[int]Exchange
	// Change sets the changes of the members, and ends Hold.
	Change(View)
	// Dropped says that the others go on without the local agent.
	Dropped()
	// Failed says that this process cannot take part in the agreement any more.
	Failed(err error)
}
