package traincmd

import (
	"slices"
	"strings"
	"testing"
)

// An agent that has one of several addresses listens there, and joins those before it. Others join
// all of them.
func TestJoinAny(t *testing.T) {
	all := []string{"127.0.0.1:4701", "127.0.0.1:4702", "192.0.2.1:4703"} // The last one is no machine.
	for _, c := range []struct {
		rank              int
		listen, advertise string
		joins             int
		listens           string
	}{
		{0, "", "", 0, "0.0.0.0:4701"},
		{1, "", "", 1, "0.0.0.0:4702"},
		{2, "", "", 3, "0.0.0.0:4703"}, // The agent has gone to this machine.
		{2, "", "192.0.2.1:4703", 2, "0.0.0.0:4703"},
		{3, "", "", 3, "0.0.0.0:0"},
		{7, "0.0.0.0:4702", "", 1, "0.0.0.0:4702"},
	} {
		f := connection{join: slices.Clone(all), listen: c.listen, advertise: c.advertise, certs: "certs",
			elastic: true}
		if err := f.checkJoin(c.rank); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(f.join, all[:c.joins]) || f.listen != c.listens {
			t.Errorf("rank %d, --listen %q: it joins %v and listens at %s, want %v and %s", c.rank, c.listen, f.join,
				f.listen, all[:c.joins], c.listens)
		}
	}
	one := connection{join: all[:1], certs: "certs", elastic: true}
	if err := one.checkJoin(1); err == nil || !strings.Contains(err.Error(), "at least two agents") {
		t.Errorf("one address: %v", err)
	}
}
