package membership

import (
	"context"
	"testing"
)

// An agent that leaves is missed from the exchange on that the local agent is in, or from the one after
// the last whose messages it has used, whatever the number of exchanges in an iteration.
func TestFirstMissed(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		each       int
		used, now  Exchange
		least      int
		want, late Exchange // late is an exchange whose messages are not used any more.
	}{
		{1, Exchange{T: 4}, Exchange{T: 5}, 0, Exchange{T: 5}, Exchange{T: 5}},
		{1, Exchange{T: 5}, Exchange{T: 5}, 0, Exchange{T: 6}, Exchange{T: 6}},
		{2, Exchange{4, 1}, Exchange{T: 5}, 0, Exchange{T: 5}, Exchange{T: 5}},
		{2, Exchange{T: 5}, Exchange{T: 5}, 0, Exchange{5, 1}, Exchange{5, 1}},
		{2, Exchange{T: 5}, Exchange{5, 1}, 0, Exchange{5, 1}, Exchange{T: 6}},
		{2, Exchange{5, 1}, Exchange{5, 1}, 0, Exchange{T: 6}, Exchange{T: 6}},
		{2, Exchange{T: 1}, Exchange{3, 1}, 7, Exchange{T: 7}, Exchange{7, 1}},
	} {
		d := Separate(0, Rules{Agents: 3, Exchanges: c.each})
		d.Enter(c.now)
		if !d.Uses(ctx, 2, c.used) {
			t.Fatal("the messages of an agent that stays are not used")
		}
		if got := d.Close(2, c.least); got != c.want {
			t.Errorf("%+v: missed from %v on", c, got)
		}
		if d.Lacks(2, c.want.T+1, c.want, 1) || !d.Lacks(2, c.want.T+1, Exchange{T: c.want.T, K: c.want.K + 1}, 1) ||
			d.Lacks(2, 1, Exchange{T: 1}, 1) {
			t.Errorf("%+v: another exchange than the one noted is the first without messages", c)
		}
		d.EndWaits()
		if d.Uses(ctx, 2, c.late) || !d.Uses(ctx, 1, c.late) {
			t.Errorf("%+v: messages are used, or not, that should not be, or be", c)
		}
	}
}

// In exchanges among all the local agent needs the messages of those that it has not confirmed.
func TestLacksOfAll(t *testing.T) {
	d := Joint(0, Rules{Agents: 3, Exchanges: 2}, func(t int) bool { return t%5 == 4 },
		func(int, Exchange) bool { return false })
	d.Enter(Exchange{T: 4})
	d.Confirms(Exchange{T: 4})
	for idle, want := range map[Exchange]bool{{T: 4}: false, {4, 1}: false, {T: 5}: true, {T: 9}: true} {
		if d.Lacks(2, 10, idle, 0) != want {
			t.Errorf("exchange 0 of iteration 4 is confirmed, and those from %v on fail: want %v", idle, want)
		}
	}
	d.Confirms(Exchange{4, 1})
	for idle, want := range map[Exchange]bool{{T: 5}: false, {T: 9}: false, {9, 1}: true} {
		if d.Lacks(2, 10, idle, 0) != want {
			t.Errorf("both exchanges of iteration 4 are confirmed, and those from %v on fail: want %v", idle, want)
		}
	}
}
