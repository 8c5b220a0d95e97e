package membership

import (
	"iter"
	"reflect"
	"testing"
)

// inTurn is the rules of four agents in which these pairs exchange in turn, one in an iteration.
func inTurn(pairs ...[2]int) Rules {
	return Rules{Agents: 5, Exchanges: 1, Sends: func(t int) iter.Seq2[int, int] {
		return func(yield func(from, to int) bool) {
			p := pairs[t%len(pairs)]
			_ = yield(p[0], p[1]) && yield(p[1], p[0])
		}
	}}
}

// Agent 0 was started again and waits for agent 1, which has left. It cannot go on if others have used
// what its earlier process did after it had the messages of agent 1: directly, or by way of agents that
// have left too.
func TestSuperseded(t *testing.T) {
	line := inTurn([2]int{0, 1}, [2]int{1, 2}, [2]int{2, 3}, [2]int{3, 4}) // 0 and 1 exchange in 0, 4, 8, …
	cannot := []Pair{{0, 1}}
	for _, c := range []struct {
		name    string
		rules   Rules
		changes string
		latest  int
		known   map[int]Progress
		want    []Pair
	}{
		{"it waits where it was", line, `{"epoch":1,"at":20,"left":[1],"idle":{"0":13,"2":13}}`, 1, nil, nil},
		{"agent 2 has used a later message", line, `{"epoch":1,"at":20,"left":[1],"idle":{"0":7,"2":18}}`, 1, nil, cannot},
		{"agent 2 has used one before it used a second one of agent 0", line,
			`{"epoch":1,"at":20,"left":[1],"idle":{"0":7,"2":10}}`, 1, nil, nil},
		{"agent 2 was further without a message", line, `{"epoch":1,"at":20,"left":[1],"idle":{"0":13,"2":17}}`, 1, nil, nil},
		{"it has not come to an exchange with agent 1", line, `{"epoch":1,"at":8,"left":[1],"idle":{"0":5,"2":8}}`, 1,
			map[int]Progress{0: {Behind: true}}, nil},
		{"others have messages that it has not sent again", line, `{"epoch":1,"at":20,"left":[1],"idle":{"0":13,"2":13}}`,
			1, map[int]Progress{0: {Behind: true}}, cannot},
		{"another one is behind", line, `{"epoch":1,"at":20,"left":[1],"idle":{"0":13,"2":13}}`, 1,
			map[int]Progress{2: {Behind: true}}, []Pair{{2, 1}}},
		{"its report of a later iteration was used", line, `{"epoch":1,"at":20,"left":[1],"idle":{"0":13,"2":13}}`, 1,
			map[int]Progress{0: {Entered: Exchange{T: 17}}}, cannot},
		{"its report of an earlier iteration was used", line, `{"epoch":1,"at":20,"left":[1],"idle":{"0":13,"2":13}}`, 1,
			map[int]Progress{0: {Entered: Exchange{T: 16}}}, nil},
		{"agent 2 has left, and agent 3 has used its later message", line,
			`{"epoch":1,"at":20,"left":[1],"idle":{"0":7}}
{"epoch":2,"at":20,"left":[2],"idle":{"3":19}}`, 2, nil, cannot},
		{"agent 2 left before, and agent 3 had used its later message", line,
			`{"epoch":1,"at":16,"left":[2],"idle":{"1":15}}
{"epoch":2,"at":20,"left":[1],"idle":{"0":7}}`, 1, nil, cannot},
		{"agent 2 left before, and had missed agent 1", line,
			`{"epoch":1,"at":16,"left":[2],"idle":{"1":9,"3":10}}
{"epoch":2,"at":20,"left":[1],"idle":{"0":7}}`, 1, nil, nil},
		{"a new agent 2 has used a later message", line,
			`{"epoch":1,"at":2,"left":[2]}
{"epoch":2,"at":9,"joined":[2]}
{"epoch":3,"at":20,"left":[1],"idle":{"0":9}}`, 1, nil, cannot},
		{"agent 2 has another agent's message", inTurn([2]int{0, 1}, [2]int{3, 2}),
			`{"epoch":1,"at":20,"left":[1],"idle":{"0":7,"2":18}}`, 1, nil, nil},
		{"no exchanges are known", Rules{Agents: 5, Exchanges: 1}, `{"epoch":1,"at":20,"left":[1],"idle":{"0":7}}`, 1,
			map[int]Progress{0: {Behind: true}}, nil},
	} {
		if got := parse(t, c.changes).Superseded(c.rules, c.latest, c.known); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v cannot go on, want %v", c.name, got, c.want)
		}
	}
}

// In an iteration with two exchanges a message of the second shows that the first one was used.
func TestSupersededBetweenExchanges(t *testing.T) {
	pairs := inTurn([2]int{0, 1}, [2]int{1, 2})
	pairs.Exchanges = 2
	for changes, want := range map[string][]Pair{
		`{"epoch":1,"at":20,"left":[1],"idle":{"0":[12,1],"2":13}}`: nil,
		`{"epoch":1,"at":20,"left":[1],"idle":{"0":12,"2":13}}`:     nil,
		`{"epoch":1,"at":20,"left":[1],"idle":{"0":12,"2":[13,1]}}`: {{0, 1}},
	} {
		if got := parse(t, changes).Superseded(pairs, 1, nil); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v cannot go on, want %v", changes, got, want)
		}
	}
}
