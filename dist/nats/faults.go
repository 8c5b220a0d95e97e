package nats

import "time"

// FaultAction says how a frame is delivered.
type FaultAction struct {
	Copies int           // number of copies that arrive; 1 is a network without faults, 0 a lost frame
	Delay  time.Duration // by which the frame is late, so that later frames overtake it
}

// FaultInjector returns the action for the next frame to an agent. It is for tests: frames are
// lost, duplicated, reordered and cut off below the protocol that repairs this.
type FaultInjector func(to int) FaultAction

// publishWithFaults publishes a frame as the fault injector decides.
func (n *Node) publishWithFaults(to int, subject string, b []byte) {
	action := FaultAction{Copies: 1}
	if n.opt.Faults != nil {
		action = n.opt.Faults(to)
	}
	if action.Copies > 0 && action.Delay > 0 {
		b = append([]byte(nil), b...)
		time.AfterFunc(action.Delay, func() { n.publishCopies(action.Copies, subject, b) })
		return
	}
	n.publishCopies(action.Copies, subject, b)
}

func (n *Node) publishCopies(copies int, subject string, b []byte) {
	for range copies {
		if err := n.conn.Publish(subject, b); err != nil {
			n.stats.connErrors.Add(1)
		}
	}
}
