package membership

import (
	"slices"
	"strings"
	"testing"
)

func parse(t *testing.T, text string) *Log {
	t.Helper()
	l, err := Parse([]byte(text), 5)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestLog(t *testing.T) {
	const text = `{"epoch":1,"at":0,"left":[4]}
{"epoch":2,"at":20,"left":[3],"idle":{"0":13,"2":[17,1]}}
{"epoch":3,"at":20,"joined":[4],"donor":2}
{"epoch":4,"at":40,"left":[0],"joined":[3]}
`
	l := parse(t, text)
	if got := Text(l.Epochs()); string(got) != text {
		t.Errorf("the log is written as\n%s", got)
	}
	for _, c := range []struct {
		t    int
		want []int
	}{{0, []int{0, 1, 2, 3}}, {19, []int{0, 1, 2, 3}}, {20, []int{0, 1, 2, 4}}, {40, []int{1, 2, 3, 4}}} {
		if got := l.Members(c.t); !slices.Equal(got, c.want) {
			t.Errorf("members in iteration %d: %v, want %v", c.t, got, c.want)
		}
	}
	for _, c := range []struct {
		t             int
		old, joined   []int
		donor         int
		changes, none bool
	}{{t: 0, none: true}, {t: 20, old: []int{0, 1, 2}, joined: []int{4}, donor: 2},
		{t: 40, old: []int{1, 2, 4}, joined: []int{3}, donor: 1}, {t: 41, none: true}} {
		got := l.Change(c.t)
		if (got == nil) != c.none {
			t.Errorf("iteration %d: change %v", c.t, got)
		} else if got != nil && (!slices.Equal(got.Old(), c.old) || !slices.Equal(got.Joined, c.joined) ||
			got.Donor != c.donor) {
			t.Errorf("iteration %d: %+v", c.t, *got)
		}
	}
	for _, c := range []struct {
		agent, peer int
		at          Exchange
		want        bool
	}{
		{0, 3, Exchange{12, 1}, false}, {0, 3, Exchange{T: 13}, true}, {0, 3, Exchange{13, 1}, true},
		{0, 3, Exchange{T: 19}, true}, {1, 3, Exchange{T: 19}, false}, {2, 3, Exchange{T: 17}, false},
		{2, 3, Exchange{17, 1}, true}, {2, 3, Exchange{T: 18}, true},
		// It still has the messages of the exchange in which it was missed first.
		{3, 0, Exchange{T: 13}, false}, {3, 0, Exchange{13, 1}, true}, {3, 0, Exchange{T: 14}, true},
		{3, 1, Exchange{19, 1}, false}, {3, 2, Exchange{17, 1}, false}, {3, 2, Exchange{T: 18}, true},
		{0, 3, Exchange{T: 20}, true}, {3, 0, Exchange{T: 20}, true}, {0, 3, Exchange{T: 40}, true},
		{1, 3, Exchange{T: 40}, false}, {0, 4, Exchange{T: 3}, true}, {0, 1, Exchange{T: 3}, false},
	} {
		if got := l.Idle(c.agent, c.peer, c.at); got != c.want {
			t.Errorf("agent %d, agent %d, %v: the exchange fails: %v, want %v", c.agent, c.peer, c.at, got, c.want)
		}
	}
}

// The donor of a change may give its state earlier. It does not if it has left meanwhile.
func TestDonation(t *testing.T) {
	const joins = `{"epoch":1,"at":20,"left":[3,4]} {"epoch":2,"at":40,"joined":[3],"donor":1,"donated":30}`
	for text, want := range map[string]int{
		joins:                                                   30,
		joins + `{"epoch":3,"at":40,"left":[2]}`:                30,
		joins + `{"epoch":3,"at":50,"left":[1]}`:                30,
		joins + `{"epoch":3,"at":40,"left":[1]}`:                40,
		joins + `{"epoch":3,"at":40,"joined":[4]}`:              30,
		joins + `{"epoch":3,"at":40,"joined":[4],"donor":2}`:    30,
		strings.Replace(joins, `,"donated":30`, ``, 1):          40,
		strings.Replace(joins, `:30`, `:40`, 1):                 40,
		joins + `{"epoch":3,"at":50,"joined":[4],"donated":45}`: 30,
	} {
		l := parse(t, text)
		c, early := l.Change(40), l.Donation(30)
		if l.Begins(3) != want || c.Early != early || early.Gives(3) != (want == 30) || early.Gives(4) ||
			early != nil && (early.Donor != 1 || early.T != 30) {
			t.Errorf("%s: begins at %d, %+v, at iteration 30 %+v", text, l.Begins(3), c.Early, early)
		}
		for at, want := range map[int]bool{29: false, 30: want == 30, 39: want == 30, 40: false} {
			if l.Awaited(3, at) != want {
				t.Errorf("%s: agent 3 is awaited in iteration %d: %v", text, at, !want)
			}
		}
		if l.Begins(1) != 0 && l.Present(1, 60) {
			t.Errorf("%s: agent 1 begins at %d", text, l.Begins(1))
		}
	}
}

func TestFixed(t *testing.T) {
	l := Fixed(3)
	if l.Elastic() || len(l.Epochs()) > 0 || l.Change(5) != nil || l.Idle(0, 2, Exchange{T: 1 << 40}) ||
		!l.Present(2, 1<<40) {
		t.Error("the members of a fixed log change")
	}
}

// The error of a bad log names the fault and its epoch.
func TestBadLogs(t *testing.T) {
	for text, want := range map[string]string{
		`{"epoch":1,"at":5`:                                                          "entry 1 is not an epoch",
		`{"epoch":1,"at":5,"gone":[1]}`:                                              "unknown field",
		`{"epoch":2,"at":5,"left":[1]}`:                                              "epoch 2: its number is not 1",
		`{"epoch":1,"at":-1,"left":[1]}`:                                             "expected 0 or later",
		`{"epoch":1,"at":5}`:                                                         "nobody leaves or joins",
		`{"epoch":1,"at":5,"left":[5]}`:                                              "the agents are 0 to 4",
		`{"epoch":1,"at":5,"left":[1,1]}`:                                            "names agent 1 twice",
		`{"epoch":1,"at":5,"joined":[1]}`:                                            "joins and is a member already",
		`{"epoch":1,"at":0,"joined":[1]}`:                                            "at which all are members",
		`{"epoch":1,"at":5,"left":[0,1,2,3,4]}`:                                      "no member stays",
		`{"epoch":1,"at":5,"left":[1],"donor":2}`:                                    "but nobody joins",
		`{"epoch":1,"at":5,"left":[1],"donated":4}`:                                  "but nobody joins",
		`{"epoch":1,"at":0,"left":[1]} {"epoch":2,"at":7,"joined":[1],"donated":8}`:  "expected 1 to 7",
		`{"epoch":1,"at":0,"left":[1]} {"epoch":2,"at":7,"joined":[1],"donated":-1}`: "expected 1 to 7",
		`{"epoch":1,"at":5,"left":[1]} {"epoch":2,"at":7,"joined":[1],"donated":4}`:  "expected 5 to 7",
		`{"epoch":1,"at":5,"left":[1],"idle":{"1":3}}`:                               "idle names agent 1, which is not one of the members",
		`{"epoch":1,"at":5,"left":[1],"idle":{"2":6}}`:                               "expected 0 to 5",
		`{"epoch":1,"at":5,"left":[1],"idle":{"2":[5,1]}}`:                           "idle from exchange 1, counted from 0, of iteration 5",
		`{"epoch":1,"at":5,"left":[1],"idle":{"2":[3,-1]}}`:                          "expected 0 to 5",
		`{"epoch":1,"at":5,"left":[1],"idle":{"2":[3]}}`:                             "[3] is no exchange",
		`{"epoch":1,"at":5,"left":[1,2],"idle":{"3":3}}`:                             "use an epoch for each",
		`{"epoch":1,"at":5,"left":[1]} {"epoch":2,"at":4,"joined":[1]}`:              "expected 5 or later",
		`{"epoch":1,"at":5,"left":[1]} {"epoch":2,"at":7,"left":[1]}`:                "leaves and is not a member",
		`{"epoch":1,"at":5,"left":[1]} {"epoch":2,"at":7,"joined":[1],"donor":1}`:    "agent 1 gives its state, but is not",
	} {
		if _, err := Parse([]byte(text), 5); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
