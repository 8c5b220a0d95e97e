package membership

import (
	"iter"
	"reflect"
	"testing"
)

// inTurn is the rules of five agents in which these pairs exchange in turn, one in an iteration.
func inTurn(pairs ...[2]int) Rules {
	return Rules{Agents: 5, Exchanges: 1, Sends: func(t int) iter.Seq2[int, int] {
		return func(yield func(from, to int) bool) {
			p := pairs[t%len(pairs)]
			_ = yield(p[0], p[1]) && yield(p[1], p[0])
		}
	}}
}

// settled returns the notes of the latest of some changes.
func settled(t *testing.T, r Rules, changes string, latest int, seen map[int]Exchange) (notes []map[int]Exchange) {
	t.Helper()
	all := parse(t, changes).Epochs()
	r.Settle(all, latest, seen)
	for _, e := range all[len(all)-latest:] {
		notes = append(notes, e.Idle)
	}
	return notes
}

// Agent 0 was started again and waits for agent 1, which has left. It cannot go on if others have
// used what its earlier process did after it had the messages of agent 1: directly, or by way of
// agents that have left too. Other notes become the first exchanges that are missed.
func TestSettle(t *testing.T) {
	type notes = []map[int]Exchange
	line := inTurn([2]int{0, 1}, [2]int{1, 2}, [2]int{2, 3}, [2]int{3, 4}) // 0 and 1 exchange in 0, 4, 8, …
	for _, c := range []struct {
		name    string
		rules   Rules
		changes string
		seen    map[int]Exchange
		want    notes
	}{
		{"it waits where it was", line, `{"epoch":1,"at":20,"left":[1],"idle":{"0":13,"2":13}}`, nil,
			notes{{0: {T: 16}, 2: {T: 13}}}},
		{"agent 2 has used a later message", line, `{"epoch":1,"at":20,"left":[1],"idle":{"0":7,"2":18}}`, nil, notes{{}}},
		{"agent 2 has used one before agent 1 used a second one of agent 0", line,
			`{"epoch":1,"at":20,"left":[1],"idle":{"0":7,"2":10}}`, nil, notes{{0: {T: 8}, 2: {T: 13}}}},
		{"it does not exchange with agent 1", line, `{"epoch":1,"at":8,"left":[1],"idle":{"0":5,"2":5,"3":2}}`,
			map[int]Exchange{0: {T: 7}}, notes{{2: {T: 5}}}},
		{"another one is behind", line, `{"epoch":1,"at":20,"left":[1],"idle":{"0":13,"2":13}}`,
			map[int]Exchange{2: {T: 18}}, notes{{0: {T: 16}}}},
		{"another one has its later message", line, `{"epoch":1,"at":20,"left":[1],"idle":{"0":13,"2":13}}`,
			map[int]Exchange{0: {T: 17}}, notes{{2: {T: 13}}}},
		{"another one has its message of the exchange in which it waits", line,
			`{"epoch":1,"at":20,"left":[1],"idle":{"0":13,"2":13}}`, map[int]Exchange{0: {T: 16}},
			notes{{0: {T: 16}, 2: {T: 13}}}},
		{"agent 2 has left, and agent 3 has used its later message", line,
			`{"epoch":1,"at":20,"left":[1],"idle":{"0":7}}
{"epoch":2,"at":20,"left":[2],"idle":{"3":17}}`, nil, notes{{}, {3: {T: 18}}}},
		{"and one before it", line,
			`{"epoch":1,"at":20,"left":[1],"idle":{"0":7}}
{"epoch":2,"at":20,"left":[2],"idle":{"3":13}}`, nil, notes{{0: {T: 8}}, {3: {T: 14}}}},
		{"and agent 1 had a second one of agent 0", line,
			`{"epoch":1,"at":20,"left":[1],"idle":{"0":3}}
{"epoch":2,"at":20,"left":[2],"idle":{"3":13}}`, nil, notes{{}, {3: {T: 14}}}},
		{"agent 2 left before, and agent 3 had used its later message", line,
			`{"epoch":1,"at":16,"left":[2],"idle":{"1":15}}
{"epoch":2,"at":20,"left":[1],"idle":{"0":3}}`, nil, notes{{}}},
		{"agent 2 left before, and had missed agent 1", line,
			`{"epoch":1,"at":16,"left":[2],"idle":{"1":9,"3":10}}
{"epoch":2,"at":20,"left":[1],"idle":{"0":7}}`, nil, notes{{0: {T: 8}}}},
		{"agent 3 has a later message of agent 2, which was started again too", line,
			`{"epoch":1,"at":20,"left":[1],"idle":{"0":7,"2":9}}`, map[int]Exchange{2: {T: 18}}, notes{{}}},
		{"a new agent 2 has used its message", line,
			`{"epoch":1,"at":2,"left":[2]}
{"epoch":2,"at":9,"joined":[2]}
{"epoch":3,"at":16,"left":[1],"idle":{"0":9}}`, nil, notes{{0: {T: 12}}}},
		{"and agent 1 had a second one of agent 0", line,
			`{"epoch":1,"at":2,"left":[2]}
{"epoch":2,"at":9,"joined":[2]}
{"epoch":3,"at":24,"left":[1],"idle":{"0":9}}`, nil, notes{{}}},
		{"agent 2 has another agent's message", inTurn([2]int{0, 1}, [2]int{3, 2}),
			`{"epoch":1,"at":20,"left":[1],"idle":{"0":7,"2":18}}`, nil, notes{{0: {T: 8}}}},
		{"no exchanges are known", Rules{Agents: 5, Exchanges: 1}, `{"epoch":1,"at":20,"left":[1],"idle":{"0":7}}`,
			map[int]Exchange{0: {T: 17}}, notes{{0: {T: 7}}}},
	} {
		got := settled(t, c.rules, c.changes, len(c.want), c.seen)
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: notes %v, want %v", c.name, got, c.want)
		}
	}
}

// In an iteration with two exchanges a message of the second shows that the first one was used.
func TestSettleBetweenExchanges(t *testing.T) {
	pairs := inTurn([2]int{0, 1}, [2]int{1, 2})
	pairs.Exchanges = 2
	for changes, want := range map[string]map[int]Exchange{
		`{"epoch":1,"at":20,"left":[1],"idle":{"0":[12,1],"2":13}}`: {0: {12, 1}, 2: {T: 13}},
		`{"epoch":1,"at":20,"left":[1],"idle":{"0":12,"2":13}}`:     {0: {T: 12}, 2: {T: 13}},
		`{"epoch":1,"at":20,"left":[1],"idle":{"0":12,"2":[13,1]}}`: {2: {13, 1}},
	} {
		if got := settled(t, pairs, changes, 1, nil); !reflect.DeepEqual(got[0], want) {
			t.Errorf("%s: notes %v, want %v", changes, got, want)
		}
	}
}
