package membership

// Progress says how far the earlier processes of an agent have come, as far as others know.
type Progress struct {
	// Behind says that they have sent messages that the present process has not sent again.
	Behind bool
	// Entered is an exchange that they have come to.
	Entered Exchange
}

// Pair is a member and an agent that leaves.
type Pair struct{ Member, Gone int }

// Superseded returns the pairs whose member cannot go on from its note of the agent that leaves, among
// the notes of the latest changes, as many as given. It was started again, its earlier process has used
// messages of that agent after the note, and others have used the results. It cannot get them again.
// known is the progress of the members.
//
// An agent has come to an exchange if another one has its message of it, which is known of agents that
// have left, too: a member has used a message of theirs, and so they have used all earlier ones.
func (l *Log) Superseded(r Rules, latest int, known map[int]Progress) (all []Pair) {
	now := l.now.Load()
	pending := now.epochs[len(now.epochs)-latest:]
	first, at := never, 0
	for _, c := range pending {
		at = c.At
		for _, from := range c.Idle {
			first = min(first, from.T)
		}
	}
	if r.Sends == nil || first >= at {
		return nil
	}
	entered := now.entered(r, first, at, known)
	for _, c := range pending {
		for member, from := range c.Idle {
			missed, misses := now.missed(r, Pair{member, c.Left[0]}, from, at)
			if misses && (known[member].Behind || missed.Before(entered[now.spanAt(member, at)])) {
				all = append(all, Pair{member, c.Left[0]})
			}
		}
	}
	return all
}

// missed returns the first exchange from a given one on, before iteration at, in which the agent that
// leaves sends to the member.
func (l *changes) missed(r Rules, p Pair, from Exchange, at int) (e Exchange, misses bool) {
	for e := from; e.T < at; e = e.next(r.Exchanges) {
		for sender, receiver := range r.Sends(e.T) {
			if sender == p.Gone && receiver == p.Member {
				return e, true
			}
		}
	}
	return e, false
}

// entered returns the latest exchanges of the iterations from first up to at, not included, that agents
// are known to have come to, by the time for which each is a member.
func (l *changes) entered(r Rules, first, at int, known map[int]Progress) map[*span]Exchange {
	entered := map[*span]Exchange{}
	for i, p := range known {
		if s := l.spanAt(i, at); s != nil {
			entered[s] = p.Entered
		}
	}
	for t := at - 1; t >= first; t-- {
		for k := r.Exchanges - 1; k >= 0; k-- {
			e := Exchange{t, k}
			for from, to := range r.Sends(t) {
				sender, receiver := l.spanAt(from, t), l.spanAt(to, t)
				if sender == nil || receiver == nil {
					continue
				}
				idle, noted := sender.idle[to]
				missed := noted && !e.Before(idle)
				if missed && sender.end < at { // That was agreed before.
					continue
				}
				used := sender.end != never && receiver.end == never && !missed
				if used || e.Before(entered[receiver]) {
					entered[sender] = e.later(entered[sender])
				}
			}
		}
	}
	return entered
}
