package link

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"fspda/dist"
)

// badMessages are what a modified agent may send in the place of one vector of iteration 7.
var badMessages = map[string]struct {
	want string
	send func(ctx context.Context, n *Node) error
}{
	"iteration": {"iteration 8", func(ctx context.Context, n *Node) error {
		return send(ctx, n, 0, 8, ramp(1, 7, 5))
	}},
	"length": {"want 5 values", func(ctx context.Context, n *Node) error {
		return send(ctx, n, 0, 7, ramp(1, 7, 4))
	}},
	"count": {"want one vector", func(ctx context.Context, n *Node) error {
		return send(ctx, n, 0, 7, ramp(1, 7, 5), ramp(1, 7, 5))
	}},
	"codec": {"values of kind 2", func(ctx context.Context, n *Node) error {
		return n.peer(0).send(ctx, exchanges, sentMessage{t: 7, body: segments{{codecFP16, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0,
			0, 0, 0, 0, 0, 0, 0}}, rawSize: 18}, 0)
	}},
	"nothing": {"has no valid head", func(ctx context.Context, n *Node) error {
		return n.peer(0).send(ctx, exchanges, sentMessage{t: 7, body: segments{{}}}, 0)
	}},
}

// oneOfFive accepts messages of one vector with five values.
func oneOfFive(m dist.Message) error {
	if len(m.Values) != 1 {
		return dist.Invalidf("%d vectors, want one vector", len(m.Values))
	}
	if n := m.Values[0].V.Len(); n != 5 {
		return dist.Invalidf("%d values, want 5 values", n)
	}
	return nil
}

// A message that was read ahead stays, in whatever form it came, and is received later, also after
// its connection has ended.
func TestPeekLeavesTheMessage(t *testing.T) {
	for name, how := range map[string]Compression{"in place": NoCompression, "compressed": Zstd} {
		t.Run(name, func(t *testing.T) {
			m := openMesh(t, 2, func(o *settings) { o.Compression = how })
			ctx := testContext(t)
			if err := send(ctx, m[1], 0, 7, ramp(1, 7, 5)); err != nil {
				t.Fatal(err)
			}
			want := ramp(1, 7, 5)
			for k, take := range []func(context.Context, int, int, int, func(dist.Message) error) (dist.Message, error){
				m[0].PeekChecked, m[0].PeekChecked, m[0].RecvChecked} {
				got, err := take(ctx, 0, 1, 7, oneOfFive)
				if err != nil {
					t.Fatal(err)
				}
				v := make([]float32, 5)
				got.Values[0].Device().Read(v, got.Values[0].V)
				if !slices.Equal(v, want) {
					t.Errorf("read %d is %v, want %v", k, v, want)
				}
				got.Release()
				if p := m[0].peer(1); k == 0 {
					p.mu.Lock()
					p.link.end(errors.New("broken by the test"))
					p.mu.Unlock()
				}
			}
		})
	}
}

// A message that no agent of the run sends closes its link, is counted, and its sender is named.
// The receiver waits on, the others exchange as before, and a valid message is taken when it comes.
func TestBadMessageNamesItsSender(t *testing.T) {
	for name, bad := range badMessages {
		t.Run(name, func(t *testing.T) {
			m := openMesh(t, 3, func(o *settings) { o.Listen = "127.0.0.1:0" })
			ctx := testContext(t)
			if err := bad.send(ctx, m[1]); err != nil {
				t.Fatal(err)
			}
			var got dist.Message
			received := make(chan error, 1)
			go func() {
				var err error
				got, err = m[0].RecvChecked(ctx, 0, 1, 7, oneOfFive)
				received <- err
			}()
			for m[0].Stats().Dropped < 2 { // It is sent again over the next link.
				if ctx.Err() != nil {
					t.Fatal("the message was not refused")
				}
				time.Sleep(time.Millisecond)
			}
			lasting, reason := m[0].Offence(1)
			if reason == nil || !strings.Contains(reason.Error(), bad.want) ||
				!strings.Contains(reason.Error(), "agent 1") || lasting <= 0 {
				t.Errorf("%v for %v, want agent 1 and %q", reason, lasting, bad.want)
			}
			for _, other := range []*Node{m[1], m[2]} {
				if _, reason := other.Offence(0); reason != nil {
					t.Errorf("agent %d accuses agent 0: %v", other.opt.Self, reason)
				}
			}
			if err := send(ctx, m[2], 0, 3, ramp(2, 3, 5)); err != nil {
				t.Error(err)
			}
			if v, err := receive(ctx, m[0], 2, 3); err != nil || !slices.Equal(v, ramp(2, 3, 5)) {
				t.Errorf("agent 2: %v, %v", v, err)
			}
			p := m[1].peer(0) // The sender is mended: its log holds a valid message.
			p.mu.Lock()
			o := &p.out[exchanges]
			b := m[1].opt.Pool.Get(5)
			m[1].opt.Pool.Device().Write(b.V, ramp(1, 7, 5))
			body, err := m[1].bodyCodec.encode(dist.Message{T: 7, Values: []*dist.Buffer{b}})
			o.log[0] = sentMessage{t: 7, body: segments{body}, size: len(body), rawSize: len(body)}
			p.mu.Unlock()
			if err := errors.Join(err, <-received); err != nil {
				t.Fatal(err)
			}
			got.Release()
			if _, reason := m[0].Offence(1); reason != nil || m[0].Failure() != nil {
				t.Errorf("after a valid message: %v, %v", reason, m[0].Failure())
			}
		})
	}
}

// Of long reports one at a time is on its way, and all arrive in their order.
func TestReportsWaitWithTheirSender(t *testing.T) {
	m := openMesh(t, 2, func(o *settings) { o.Dim = reportBytes })
	ctx := testContext(t)
	const sent = 4
	for k := range sent {
		if err := m[1].Report(ctx, 0, k, make([]byte, reportBytes)); err != nil {
			t.Fatal(err)
		}
	}
	p := m[0].peer(1)
	for k := range sent {
		await(t, "a report arrives", func() bool {
			p.mu.Lock()
			defer p.mu.Unlock()
			if n := len(p.in[reports].queue); n > 1 {
				t.Fatalf("%d reports have arrived", n)
			}
			return len(p.in[reports].queue) == 1
		})
		err := m[0].TakeReport(ctx, 1, func(at int, b []byte) error {
			if at != k || len(b) != reportBytes {
				t.Errorf("report %d has %d bytes of iteration %d", k, len(b), at)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A report that its receiver refuses is counted, and its sender is named.
func TestBadReportNamesItsSender(t *testing.T) {
	m := openMesh(t, 2, nil)
	ctx, cancel := context.WithCancel(testContext(t))
	if err := m[1].Report(ctx, 0, 1, []byte("nonsense")); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		ended <- m[0].TakeReport(ctx, 1, func(int, []byte) error { return dist.Invalidf("nonsense") })
	}()
	for reason := error(nil); reason == nil; _, reason = m[0].Offence(1) {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	var text string
	keep := func(_ int, b []byte) error { text = string(b); return nil }
	if err := m[0].TakeReport(testContext(t), 1, keep); err != nil || text != "nonsense" {
		t.Errorf("the refused report came again as %q, %v", text, err)
	}
}

// Values that are not finite are refused on arrival, with the name of their sender.
func TestBadValuesNameTheirSender(t *testing.T) {
	m := openMesh(t, 2, nil)
	ctx := testContext(t)
	v := ramp(1, 7, 500)
	v[321] = float32(math.Inf(-1))
	if err := send(ctx, m[1], 0, 7, v); err != nil {
		t.Fatal(err)
	}
	_, err := m[0].RecvChecked(ctx, 0, 1, 7, func(dist.Message) error { return nil })
	bad, ok := errors.AsType[*dist.BadValueError](err)
	if !ok || bad.From != 1 || bad.T != 7 || bad.At != 321 || !math.IsInf(float64(bad.Value), -1) {
		t.Errorf("%v", err)
	}
	if _, reason := m[0].Offence(1); reason == nil {
		t.Error("the sender is not named")
	}
}
