package membership

import "maps"

// Settle completes the notes of the latest changes, which are valid from the same iteration on;
// latest is their number. A note becomes the first exchange that the member misses, and is
// removed if it misses none. It is also removed if the member cannot go on from there: the member
// was started again, its earlier process has used the messages that it misses, and others have
// used the results. It has used them by the log then, and has to leave. seen are the latest
// exchanges to which the members have seen each agent come.
//
// An agent has come to an exchange if another one has its message of it. So it is known of agents
// that have left, and of processes that have ended, how far they came: if a member has used a
// message of theirs, they have used all earlier ones that others sent to them.
func (r *Rules) Settle(changes []Epoch, latest int, seen map[int]Exchange) {
	now := noChanges(r.Agents)
	for _, e := range changes {
		if now.add(r.Agents, e) != nil {
			return // No member can go on.
		}
	}
	pending := changes[len(changes)-latest:]
	first := never
	for _, c := range pending {
		for member, from := range c.Idle {
			if e, misses := r.next(c.Left[0], member, from, c.At); misses {
				c.Idle[member] = e
				first = min(first, e.T)
			} else {
				delete(c.Idle, member)
			}
		}
	}
	if r.Sends == nil || first == never {
		return
	}
	at := pending[0].At
	entered := now.entered(r, first, at, seen)
	for _, c := range pending {
		maps.DeleteFunc(c.Idle, func(member int, e Exchange) bool { return e.Before(entered[now.spanAt(member, at)]) })
	}
}

// entered returns the latest exchanges that agents are known to have come to, by the time for which
// each is a member. It looks at iterations from first to before at.
func (l *changes) entered(r *Rules, first, at int, seen map[int]Exchange) map[*span]Exchange {
	entered := map[*span]Exchange{}
	for i, e := range seen {
		if s := l.spanAt(i, at); s != nil {
			entered[s] = e
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
					entered[sender] = e.Later(entered[sender])
				}
			}
		}
	}
	return entered
}
