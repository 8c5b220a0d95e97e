package nats

import "time"

// Fate is what becomes of a frame on its way.
type FaultAction struct {
	Copies int           // that arrive; 1 is a good network
	Delay  time.Duration // so much later than others: later ones overtake it
}

// Weather says what becomes of the next frame to an agent. It is for tests of runs: frames are
// lost, doubled, reordered and cut off where the real network would, below all that makes up for
// it.
type FaultInjector func(to int) FaultAction

// send publishes a frame as the weather has it.
func (n *Node) send(to int, subject string, b []byte) {
	fate := FaultAction{Copies: 1}
	if n.opt.Faults != nil {
		fate = n.opt.Faults(to)
	}
	if fate.Copies > 0 && fate.Delay > 0 {
		b = append([]byte(nil), b...)
		time.AfterFunc(fate.Delay, func() { n.publishTimes(fate.Copies, subject, b) })
		return
	}
	n.publishTimes(fate.Copies, subject, b)
}

func (n *Node) publishTimes(copies int, subject string, b []byte) {
	for range copies {
		if err := n.conn.Publish(subject, b); err != nil {
			n.stats.trouble.Add(1)
		}
	}
}
