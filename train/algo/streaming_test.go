package algo

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"fspda/device"
	"fspda/dist"
)

// Streaming DiLoCo with a delay, written out: the mean change of a part, taken where its round
// ends, moves slow model and momentum some iterations later, and the model by its share. Agents
// that are made anew from their state while messages travel post the same messages again.
func TestLateStreamingDiLoCo(t *testing.T) {
	const every, parts, rate, mu = 4, 3, 0.7, 0.8
	for _, c := range []struct {
		delay int
		own   float64
	}{{0, 0.3}, {1, 0}, {2, 0.5}, {3, 1}} {
		forWorlds(t, func(t *testing.T, w world, q quadratics) {
			a := StreamingDiLoCo{Every: every, Rate: rate, Mu: mu, Delay: c.delay, Own: c.own, Descent: heavyBall(0.5)}
			g := outerWorld(a, w, q, every)
			part := func(t int) (from, to int) {
				k := t / every % parts
				return w.d * k / parts, w.d * (k + 1) / parts
			}
			g.mask = func(t, _, _ int) (c []uint32) {
				for from, to := part(t); from < to; from++ {
					c = append(c, uint32(from))
				}
				return c
			}
			slow, buffer, change := make([]float64, w.d), make([]float64, w.d), make([]float64, w.d)
			x, u := zeros(w.n, w.d), zeros(w.n, w.d)
			for it := range 10 * every {
				heavyBallSteps(g, it, x, u)
				g.step(t, it)
				if average := mean(w.n, func(i int) []float64 { return x[i] }); (it+1)%every == 0 {
					for k, to := part(it); k < to; k++ {
						change[k] = slow[k] - average[k]
					}
				}
				if taken := it - c.delay; taken >= 0 && (taken+1)%every == 0 {
					for k, to := part(taken); k < to; k++ {
						buffer[k] = mu*buffer[k] + change[k]
						slow[k] -= rate * (change[k] + mu*buffer[k])
						for i := range x {
							x[i][k] = (1-c.own)*slow[k] + c.own*x[i][k]
						}
					}
				}
				sameModels(t, it, g, x)
				if it > every && (it+1)%every == 2 && c.delay > 2 {
					checkRepost(t, g)
				}
			}
		})
	}
}

// checkRepost compares the messages under way with the messages that agents made anew would post.
func checkRepost(t *testing.T, g *game) {
	t.Helper()
	for i, s := range g.state {
		again := revive(g.algo, g.dev, s)
		r := g.round(g.late[i].T, i, g.edges(g.late[i].T))
		if err := g.algo.Traits().Repost(again, r); err != nil {
			t.Fatal(err)
		}
		for k := range r.Links {
			for v, posted := range g.late[i].Links[k].Sent {
				if !slices.Equal(values(r.Links[k].Sent[v]), values(posted)) {
					t.Fatalf("iteration %d: agent %d posts another message again", r.T, i)
				}
			}
		}
	}
}

// With codes and feedback, messages that are posted again are the same too, and late steps leave
// the same slow models at all agents.
func TestLateQuantizedStreamingDiLoCo(t *testing.T) {
	for _, by := range []Quantized{{}, {Feedback: 0.9}, {TwoSteps: true, Feedback: 0.5}} {
		forWorlds(t, func(t *testing.T, w world, q quadratics) {
			a := StreamingDiLoCo{Every: 2, Rate: 0.7, Mu: 0.8, Delay: 1, Own: 0.5, Reduce: by, Descent: heavyBall(0.5)}
			g := codedWorld(a, w, q, inInts(4, 2))
			inThree(g)
			g.coded, g.share = func(*Link, int) dist.Sent { return dist.Sent{} }, false
			for it := range 30 {
				g.step(t, it)
				if it%2 == 1 {
					checkRepost(t, g)
				}
				for i := range w.n {
					if !slices.Equal(g.aux(i, "start"), g.aux(0, "start")) {
						t.Fatalf("%+v, iteration %d: agent %d has another slow model than agent 0", by, it, i)
					}
				}
			}
		})
	}
}

// Parts follow the blocks of a network, in sequence or strided, and tensors without blocks.
func TestPartsByLayers(t *testing.T) {
	gpt := []string{"wte.weight", "wpe.weight", "h.0.ln.weight", "h.0.mlp.weight", "h.1.ln.weight", "h.1.mlp.weight",
		"h.2.mlp.weight", "ln_f.weight"}
	resnet := []string{"conv1.weight", "layer1.0.conv1.weight", "layer1.0.downsample.0.weight", "layer1.1.conv1.weight",
		"layer2.0.conv1.weight", "fc.weight", "fc.bias"}
	for _, c := range []struct {
		names   []string
		size    []int // of each tensor; nil: 10
		parts   int
		strided bool
		want    string // the tensors of each part; empty: refused
	}{
		{gpt, nil, 3, true, "0 1 2 3|4 5|6 7"},
		{gpt, nil, 2, true, "0 1 2 3 6|4 5 7"},
		{gpt, nil, 2, false, "0 1 2 3 4 5|6 7"},
		{gpt, nil, 4, true, ""},
		{resnet, nil, 3, true, "0 1 2|3|4 5 6"},
		{resnet, nil, 2, true, "0 1 2 4|3 5 6"},
		{[]string{"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"}, []int{40, 10, 45, 5}, 2, false, "0 1|2 3"},
		{[]string{"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"}, []int{90, 2, 6, 2}, 4, false, ""},
	} {
		s := Settings{Density: 1 / float64(c.parts)}
		at, of := 0, map[int]int{}
		for k, name := range c.names {
			size := 10
			if c.size != nil {
				size = c.size[k]
			}
			s.Tensors = append(s.Tensors, Tensor{Name: name, Offset: at, Rows: size})
			for i := range size {
				of[at+i] = k
			}
			at += size
		}
		parts, err := layered(s, c.strided)
		if (err != nil) != (c.want == "") {
			t.Errorf("%v in %d parts: error %v", c.names, c.parts, err)
			continue
		}
		var got []string
		total := 0
		for _, ranges := range parts {
			var in []string
			for _, r := range ranges {
				for i := r.From; i < r.To; i++ {
					if total++; i == 0 || of[i] != of[i-1] {
						in = append(in, fmt.Sprint(of[i]))
					}
				}
			}
			got = append(got, strings.Join(in, " "))
		}
		if strings.Join(got, "|") != c.want || c.want != "" && total != at {
			t.Errorf("%v in %d parts, strided %v: %v with %d coordinates, want %q", c.names, c.parts, c.strided, got,
				total, c.want)
		}
	}
	if joined([]device.Range{{To: 2}, {From: 2, To: 3}})[0].To != 3 {
		t.Error("ranges that follow each other are not joined")
	}
}
