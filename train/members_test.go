package train

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fspda/internal/rng"
	"fspda/train/safetensors"
)

// churn is a log of changes of five agents. All iterations are multiples of 10.
const churn = `{"epoch":1,"at":20,"left":[3],"idle":{"0":13,"1":13,"2":13,"4":13}}
{"epoch":2,"at":40,"joined":[3],"donor":1}
{"epoch":3,"at":50,"left":[0,1]}
{"epoch":4,"at":50,"joined":[1],"donor":4}
{"epoch":5,"at":70,"joined":[0]}
`

// elastic is a small configuration of a method under a log of changes. Its form may follow the name.
func elastic(t *testing.T, name, log string) Config {
	t.Helper()
	c := small()
	name, form, found := strings.Cut(name, " ")
	if found {
		c.Params = Params{"form": form}
	}
	c.Algo, c.Graph, c.Iterations, c.EvalPoints, c.Alpha, c.Metrics = name, "complete", 80, 8, 0.1, "test"
	c.Edges = "auto"
	switch name {
	case "scaffnew", "led", "kgt", "local-sgd", "des-loc", "diloco", "muloco", "sparseloco", "noloco", "gasloc":
		c.LocalSteps = 5
	}
	if fullEdges(t, c) {
		c.Edges = "full"
	}
	c.Membership = filepath.Join(t.TempDir(), "changes.jsonl")
	if err := os.WriteFile(c.Membership, []byte(log), 0o644); err != nil {
		t.Fatal(err)
	}
	return c
}

// noticed is churn as agents notice it that do not all exchange with each other: in different
// iterations.
var noticed = strings.Replace(churn, `{"0":13,"1":13,"2":13,"4":13}`, `{"2":13,"4":17}`, 1)

// between is noticed where an iteration has two exchanges: agents notice it in the second, too.
var between = strings.Replace(noticed, `{"2":13,"4":17}`, `{"1":[19,1],"2":[13,1],"4":17}`, 1)

// families has a method of each family that does the same at a change of the members.
var families = []string{"dsgd", "fspda-sa", "fspda-storm", "dsgt", "led", "docom", "sgp", "diloco", "demo",
	"fspda-sa-ef", "dsgt atc"}

// Every method goes through leaves and joins, or says why not: whatever the number of threads, and
// stopped and resumed or not, it is the same run to the bit. FSPDA_LONG=1 plays all of them.
func TestElastic(t *testing.T) {
	for _, name := range append(Algorithms(), "dsgt atc") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := elastic(t, name, churn)
			m := labModel(t, c)
			s, err := c.Resolve(labSet, m)
			if err != nil {
				if !strings.Contains(err.Error(), "config: membership") || !strings.Contains(err.Error(), name+" ") {
					t.Error(err)
				}
				return
			}
			if os.Getenv("FSPDA_LONG") == "" && !slices.Contains(families, name) {
				return
			}
			switch {
			case len(s.Traits.Between) > 0:
				c = elastic(t, name, between)
			case !s.Traits.Edges.Collective:
				c = elastic(t, name, noticed)
			}
			c.Threads = 1
			want := play(t, c, Options{})
			for k, n := range []float64{5, 5, 4, 4, 5, 4, 4, 5, 5} {
				if r := want.Rows[k]; float64(r.AgentsPresent) != n {
					t.Errorf("iteration %d: %v agents present, want %v", r.Iteration, r.AgentsPresent, n)
				}
			}
			if name == "demo" && want.Rows[len(want.Rows)-1].Consensus > 0 {
				t.Error("models of one sum differ")
			}
			c.Threads = 4
			dir := runFolder(t)
			for _, at := range []int{45, -1} {
				ctx, stop := context.WithCancel(context.Background())
				opt := stopping(at, stop)
				opt.lend = true // few gradient vectors for all agents
				got, err := inFolder(t, ctx, c, dir, opt)
				stop()
				if err != nil {
					t.Fatal(err)
				}
				if at < 0 && trace(t, got) != trace(t, want) {
					t.Error("with other threads, stopped and resumed, it is another run")
				}
			}
		})
	}
}

// A new member may begin with an earlier state of its donor. That is another run than with the state
// at the change. It has the same bits with any number of threads, and when it is stopped between
// the two iterations and resumed.
func TestEarlierDonor(t *testing.T) {
	const early = `{"epoch":1,"at":20,"left":[3]} {"epoch":2,"at":40,"joined":[3],"donor":1,"donated":30}`
	for _, name := range families {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := elastic(t, name, early)
			s, err := c.Resolve(labSet, labModel(t, c))
			if err != nil {
				if !strings.Contains(err.Error(), "new members get that of iteration 40") {
					t.Error(err)
				}
				return
			}
			if !s.MemberRules().Ahead {
				t.Error("a state of an earlier iteration is not refused")
			}
			c.Threads = 1
			want := play(t, c, Options{})
			late := play(t, elastic(t, name, strings.Replace(early, `,"donated":30`, "", 1)), Options{})
			if slices.Equal(want.Models[3], late.Models[3]) {
				t.Error("the state of an earlier iteration is no other one")
			}
			c.Threads = 4
			for _, at := range []int{30, 35} {
				dir := runFolder(t)
				for _, at := range []int{at, -1} {
					ctx, stop := context.WithCancel(context.Background())
					opt := stopping(at, stop)
					opt.lend = true
					got, err := inFolder(t, ctx, c, dir, opt)
					stop()
					if err != nil {
						t.Fatal(err)
					}
					if at < 0 && trace(t, got) != trace(t, want) {
						t.Error("with other threads, stopped and resumed, it is another run")
					}
				}
			}
		})
	}
}

// The donor leaves before the new agent is a member: another one gives it the state at the change.
func TestEarlierDonorLeaves(t *testing.T) {
	const both = `{"epoch":1,"at":20,"left":[3]} {"epoch":2,"at":40,"joined":[3],"donor":1,"donated":30}
{"epoch":3,"at":40,"left":[1],"idle":{"0":33,"2":35,"4":32}}`
	for _, name := range []string{"dsgd", "fspda-sa"} {
		got := play(t, elastic(t, name, both), Options{})
		want := play(t, elastic(t, name, strings.NewReplacer(`,"donated":30`, "", `"donor":1`, `"donor":0`).Replace(both)),
			Options{})
		if !slices.Equal(got.Models[3], want.Models[3]) {
			t.Errorf("%s: the new agent has not the state of agent 0", name)
		}
	}
}

// What an agent computes after its last exchange has no effect: in which iteration the others agree
// that it has left does not matter where nothing is done then.
func TestLastExchangeCounts(t *testing.T) {
	models := func(name string, at int, idle string) [][]float32 {
		c := elastic(t, name, fmt.Sprintf(`{"epoch":1,"at":%d,"left":[3],"idle":%s}`, at, idle))
		return play(t, c, Options{}).Models
	}
	for name, idle := range map[string]string{"dsgd": `{"0":11,"1":4,"2":15,"4":12}`,
		"local-sgd": `{"0":11,"1":11,"2":11,"4":11}`} {
		early, late := models(name, 15, idle), models(name, 30, idle)
		for _, i := range []int{0, 1, 2, 4} {
			if !slices.Equal(early[i], late[i]) {
				t.Errorf("%s: agent %d differs", name, i)
			}
		}
		if other := models(name, 30, `{"0":21,"1":21,"2":21,"4":21}`); slices.Equal(early[0], other[0]) {
			t.Errorf("%s: exchanges that took place had no effect", name)
		}
	}
}

// In methods with two exchanges in an iteration the log says in which of them an agent was missed
// first, and each of them has an effect.
func TestExchangesOfAnIteration(t *testing.T) {
	for _, name := range []string{"dsgt atc", "docom"} {
		var before [][]float32
		for _, idle := range []string{"13", "[13,1]", "14"} {
			c := elastic(t, name, `{"epoch":1,"at":20,"left":[3],"idle":{"0":13,"1":`+idle+`}}`)
			got := play(t, c, Options{}).Models
			for _, i := range []int{0, 1, 2, 4} {
				if before != nil && slices.Equal(got[i], before[i]) {
					t.Errorf("%s: agent %d is the same where agent 1 missed agent 3 an exchange later, at %s", name, i,
						idle)
				}
			}
			before = got
		}
	}
}

// randomLog has the given number of leaves and joins among n agents, one in every tenth iteration.
func randomLog(seed uint64, n, changes int) string {
	var b strings.Builder
	s := rng.New(seed, "churn")
	var away []int
	for k := 1; k <= changes; k++ {
		i := s.IntN(n)
		if at := slices.Index(away, i); at >= 0 {
			fmt.Fprintf(&b, "{\"epoch\":%d,\"at\":%d,\"joined\":[%d]}\n", k, 10*k, i)
			away = slices.Delete(away, at, at+1)
			continue
		}
		if len(away) == n-2 {
			i, away = away[0], away[1:]
			fmt.Fprintf(&b, "{\"epoch\":%d,\"at\":%d,\"joined\":[%d]}\n", k, 10*k, i)
			continue
		}
		away = append(away, i)
		fmt.Fprintf(&b, "{\"epoch\":%d,\"at\":%d,\"left\":[%d]}\n", k, 10*k, i)
	}
	return b.String()
}

// After 50 leaves and joins the duals of the members sum to zero, up to rounding.
func TestDualsSumToZeroUnderChurn(t *testing.T) {
	for _, name := range []string{"fspda-sa", "fspda-storm", "fspda-sa-sketch", "fspda-sa-ef", "ticopd"} {
		if os.Getenv("FSPDA_LONG") == "" && !slices.Contains(families, name) {
			continue
		}
		c := elastic(t, name, randomLog(7, 5, 50))
		c.Iterations, c.EvalPoints = 520, 4
		dir := runFolder(t)
		res, err := inFolder(t, context.Background(), c, dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		s, _ := resolve(t, c)
		file, err := safetensors.Open(filepath.Join(dir, "checkpoints", "iter-000000520", "agents.safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		sum, largest := make([]float64, s.Dim), 0.0
		for i := range c.Agents {
			v, err := safetensors.Load[float32](file, fmt.Sprintf("agent%d/%s", i, s.Traits.Tracked.Name))
			if err != nil {
				t.Fatal(err)
			}
			for k, x := range v {
				largest = max(largest, math.Abs(float64(x)))
				if s.Members.Present(i, c.Iterations-1) {
					sum[k] += float64(x)
				}
			}
		}
		worst := max(slices.Max(sum), -slices.Min(sum))
		t.Logf("%s: the duals sum to at most %.3g in a coordinate, and the largest is %.3g: %.2g of it", name, worst,
			largest, worst/largest)
		if !(worst <= 1e-5*largest) || largest == 0 || float64(res.Rows[len(res.Rows)-1].DualSum) > largest {
			t.Errorf("%s: the duals sum to %g in a coordinate, and the largest number is %g", name, worst, largest)
		}
	}
}

// The examples of absent agents are dealt to the members, each to one.
func TestOrphans(t *testing.T) {
	c := elastic(t, "dsgd", noticed)
	c.Orphans = "spread"
	s, _ := resolve(t, c)
	for _, at := range []int{0, 30, 60} {
		members := s.Members.Members(at)
		var all []int32
		for _, i := range members {
			all = append(all, s.ShardAt(i, at)...)
		}
		slices.Sort(all)
		if n := len(slices.Compact(slices.Clone(all))); n != 400 || len(all) != 400 {
			t.Errorf("iteration %d: %d members have %d examples, %d of them different; want 400", at, len(members),
				len(all), n)
		}
	}
	spread := trace(t, play(t, c, Options{}))
	c.Threads = 1
	if trace(t, play(t, c, Options{})) != spread {
		t.Error("another number of threads: another run")
	}
	c.Orphans = "leave"
	if trace(t, play(t, c, Options{})) == spread {
		t.Error("the examples of absent agents had no effect")
	}
}

// Changes that a run cannot have are refused with the reason.
func TestRefusedMembership(t *testing.T) {
	for _, c := range []struct{ algo, log, want string }{
		{"relaysgd", `{"epoch":1,"at":20,"left":[3]}`, "relaysgd sums models along the branches of a tree"},
		{"local-sgd", `{"epoch":1,"at":13,"left":[3]}`, "inside a round of 5 iterations: use 10 or 15"},
		{"local-sgd", `{"epoch":1,"at":20,"left":[3],"idle":{"2":13}}`, "goes to all members or to none"},
		{"dsgd", `{"epoch":1,"at":20,"left":[5]}`, "the agents are 0 to 4"},
		{"dsgd", `{"epoch":1,"at":20,"left":[3],"idle":{"2":[13,1]}}`, "dsgd has 1 in an iteration"},
		{"dsgd", "left", "is not an epoch in JSON"},
	} {
		cfg := elastic(t, c.algo, c.log)
		m := labModel(t, cfg)
		if _, err := cfg.Resolve(labSet, m); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, %s: %v, want %q", c.algo, c.log, err, c.want)
		}
	}
	c := elastic(t, "dsgd", `{"epoch":1,"at":20,"left":[0]}`)
	c.Graph = "star"
	if s, _ := resolve(t, c); !slices.ContainsFunc(s.Warnings, func(w string) bool {
		return strings.Contains(w, "the members [1 2 3 4] are not connected on graph star")
	}) {
		t.Errorf("warnings %q", s.Warnings)
	}
}

// outages are links on which agent 3 is away for a while, and agent 1 from some time on.
const outages = `
gradient_ms: 1000
gradient_law: exp
default: {latency_ms: 50, bandwidth_mbit: 10}
outages:
  - {agents: 3, from_s: 20, to_s: 60}
  - {agents: 1, from_s: 45, to_s: 47}
  - {agents: 0, from_s: 50}
`

// overLinks puts a file of links beside the log of a configuration.
func overLinks(t *testing.T, c Config, text string) Config {
	t.Helper()
	c.Links = filepath.Join(filepath.Dir(c.Membership), "links.yaml")
	if err := os.WriteFile(c.Links, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return c
}

// Agents that fall silent in virtual time are left behind and join again, the same way whatever the
// number of threads, and stopped and resumed or not. The log in the folder of the run plays the same
// models again, without links.
func TestChurnInVirtualTime(t *testing.T) {
	for _, name := range families {
		t.Run(name, func(t *testing.T) {
			c := overLinks(t, elastic(t, name, ""), outages)
			written := c.Membership
			c.Membership, c.DropAfter, c.Threads = "elastic", 5, 1
			want := play(t, c, Options{})
			c.Threads = 4
			dir := runFolder(t)
			var got *Result
			for _, at := range []int{35, -1} {
				ctx, stop := context.WithCancel(context.Background())
				res, err := inFolder(t, ctx, c, dir, stopping(at, stop))
				stop()
				if err != nil {
					t.Fatal(err)
				}
				got = res
			}
			if trace(t, got) != trace(t, want) {
				t.Error("with other threads, stopped and resumed, it is another run")
			}
			text, err := os.ReadFile(filepath.Join(dir, "members.jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			if log := string(text); !strings.Contains(log, `"left":[3]`) || !strings.Contains(log, `"joined":[3]`) ||
				!strings.Contains(log, `"left":[0]`) || strings.Contains(log, `"left":[1]`) {
				t.Errorf("the members changed by\n%s", text)
			}
			if last := got.Rows[len(got.Rows)-1]; last.AgentsPresent != 4 {
				t.Errorf("%v agents are present at the end", last.AgentsPresent)
			}
			if err := os.WriteFile(written, text, 0o644); err != nil {
				t.Fatal(err)
			}
			c.Links, c.Membership, c.DropAfter = "", written, 0
			again := play(t, c, Options{})
			for _, i := range []int{1, 2, 3, 4} {
				if !slices.Equal(again.Models[i], want.Models[i]) {
					t.Errorf("agent %d of the log played again differs", i)
				}
			}
		})
	}
}

// randomOutages has five agents on links, four of which are away for random times.
func randomOutages(seed uint64) string {
	s := rng.New(seed, "outages")
	text, _, _ := strings.Cut(outages, "  - {")
	for i := 1; i < 5; i++ {
		for at := 0; at < 70; {
			from := at + 1 + s.IntN(40)
			at = from + 3 + s.IntN(30)
			text += fmt.Sprintf("  - {agents: %d, from_s: %d, to_s: %d}\n", i, from, at)
			at++
		}
	}
	return text
}

// Runs in which random agents leave and join in virtual time are the same to the bit by their logs.
// FSPDA_LONG=1 makes 20 runs of each family.
func TestRandomChurnByItsLog(t *testing.T) {
	runs := 1
	if os.Getenv("FSPDA_LONG") != "" {
		runs = 20
	}
	for _, name := range append(slices.Clone(families), "choco", "beer", "extra", "local-sgd", "sgd") {
		if runs == 1 && !slices.Contains(families, name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			left, joined := 0, 0
			for seed := range runs {
				c := overLinks(t, elastic(t, name, ""), randomOutages(uint64(seed)))
				written := c.Membership
				c.Membership, c.DropAfter, c.Seed = "elastic", 5, uint64(seed)
				dir := runFolder(t)
				want, err := inFolder(t, context.Background(), c, dir, Options{})
				if err != nil {
					t.Fatal(err)
				}
				text, err := os.ReadFile(filepath.Join(dir, "members.jsonl"))
				if err == nil {
					err = os.WriteFile(written, text, 0o644)
				}
				if err != nil {
					t.Fatal(err)
				}
				c.Links, c.Membership, c.DropAfter = "", written, 0
				again := play(t, c, Options{})
				s, _ := resolve(t, c)
				for _, i := range s.Members.Members(c.Iterations - 1) {
					if !slices.Equal(again.Models[i], want.Models[i]) {
						t.Errorf("seed %d: agent %d of the log played again differs; the log is\n%s", seed, i, text)
					}
				}
				for _, e := range s.Members.Epochs() {
					left, joined = left+len(e.Left), joined+len(e.Joined)
				}
			}
			t.Logf("%d runs: %d agents left, %d joined", runs, left, joined)
			if left == 0 || joined == 0 {
				t.Errorf("%d agents left, and %d joined", left, joined)
			}
		})
	}
}

// With fixed members all wait for an agent with an outage, and models are as without one.
func TestFixedMembersWait(t *testing.T) {
	c := overLinks(t, elastic(t, "fspda-sa", ""), strings.Replace(outages, "  - {agents: 0, from_s: 50}\n", "", 1))
	c.Membership = "fixed"
	away := play(t, c, Options{})
	c = overLinks(t, elastic(t, "fspda-sa", ""), strings.Split(outages, "outages:")[0])
	c.Membership = "fixed"
	here := play(t, c, Options{})
	if !slices.EqualFunc(away.Models, here.Models, slices.Equal) {
		t.Error("an outage changed models")
	}
	slow, fast := away.Rows[len(away.Rows)-1].Time, here.Rows[len(here.Rows)-1].Time
	if slow < fast+20 {
		t.Errorf("the run takes %v s, and %v s without outages", slow, fast)
	}
}

// Below min_agents all wait.
func TestMinAgents(t *testing.T) {
	c := overLinks(t, elastic(t, "dsgd", ""), strings.Replace(outages, "  - {agents: 0, from_s: 50}\n", "", 1))
	c.Membership, c.DropAfter, c.MinAgents = "elastic", 5, 5
	for _, r := range play(t, c, Options{}).Rows {
		if r.AgentsPresent != 5 {
			t.Errorf("%v agents are present in iteration %d", r.AgentsPresent, r.Iteration)
		}
	}
}
