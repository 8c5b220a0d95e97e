package disttest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"fspda/device"
	"fspda/device/devicetest"
	"fspda/dist"
)

// waitLimit bounds the waits of the contract's tests. It only matters when a test fails.
const waitLimit = 20 * time.Second

// TestTransport tests the contract of dist.Transport. open returns a new network of agents 0..n-1
// without faults; it may use t.Cleanup to close it.
func TestTransport(t *testing.T, open func(t *testing.T, n int) dist.Transport) {
	for _, part := range []struct {
		name  string
		check func(t *testing.T, open func(t *testing.T, n int) dist.Transport)
	}{
		{"keeps order", checkOrder},
		{"keeps bits", checkBits},
		{"shares buffers", checkSharing},
		{"many agents", checkMany},
		{"streams are independent", checkIndependence},
		{"refuses another iteration", checkIteration},
		{"canceled receiver", checkCanceledRecv},
		{"canceled sender", checkCanceledSend},
	} {
		t.Run(part.name, func(t *testing.T) { part.check(t, open) })
	}
}

// fixture is the device and the pool of a test.
type fixture struct {
	dev  device.Device
	pool *dist.Pool
}

func newFixture() fixture {
	dev := devicetest.NewFloat64()
	return fixture{dev, dist.NewPool(dev)}
}

func (b fixture) buffer(values ...float32) *dist.Buffer {
	buf := b.pool.Get(len(values))
	b.dev.Write(buf.V, values)
	return buf
}

func (b fixture) read(buf *dist.Buffer) []float32 {
	values := make([]float32, buf.V.Len())
	b.dev.Read(values, buf.V)
	return values
}

// within runs the parts concurrently and fails the test if one of them returns an error or they
// take longer than waitLimit.
func within(t *testing.T, parts ...func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	defer cancel()
	errs := make([]error, len(parts))
	var wg sync.WaitGroup
	for k, part := range parts {
		wg.Go(func() {
			if errs[k] = part(ctx); errs[k] != nil {
				cancel() // the others cannot continue
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// testValue returns the value that agent from sends to agent to at iteration t: distinct and exact
// in float32.
func testValue(from, to, t int) float32 { return float32(from<<16 | to<<12 | t) }

func send(ctx context.Context, net dist.Transport, b fixture, from, to, t int) error {
	return net.Send(ctx, dist.Message{T: t,
		From: from, To: to, Values: []*dist.Buffer{b.buffer(testValue(from, to, t))}, Arrives: arrival(t)})
}

// recv receives and checks the message that send sends.
func recv(ctx context.Context, net dist.Transport, b fixture, self, from, t int) error {
	m, err := net.Recv(ctx, self, from, t)
	if err != nil {
		return err
	}
	if m.T != t || m.From != from || m.To != self || len(m.Values) != 1 {
		return fmt.Errorf("got message %+v, want iteration %d from %d to %d with one value", m, t, from, self)
	}
	if got, want := b.read(m.Values[0])[0], testValue(from, self, t); got != want {
		return fmt.Errorf("got value %v of iteration %d from %d to %d, want %v", got, t, from, self, want)
	}
	if m.Arrives != arrival(t) {
		return fmt.Errorf("got iteration %d from %d to %d with arrival %v, want %v: a transport must preserve it", t,
			from, self, m.Arrives, arrival(t))
	}
	m.Release()
	return nil
}

// arrival returns the virtual arrival time of a message. It is not exact in float32.
func arrival(t int) float64 { return float64(t) + 1.0/3 }

func checkOrder(t *testing.T, open func(t *testing.T, n int) dist.Transport) {
	const rounds = 200
	net, b := open(t, 2), newFixture()
	within(t,
		func(ctx context.Context) error {
			for k := range rounds {
				if err := send(ctx, net, b, 0, 1, 3*k); err != nil {
					return err
				}
			}
			return nil
		},
		func(ctx context.Context) error {
			for k := range rounds {
				if err := recv(ctx, net, b, 1, 0, 3*k); err != nil {
					return err
				}
			}
			return nil
		})
}

func checkBits(t *testing.T, open func(t *testing.T, n int) dist.Transport) {
	net, b := open(t, 2), newFixture()
	odd := []float32{0, float32(math.Copysign(0, -1)), 1, -1.5, math.MaxFloat32, math.SmallestNonzeroFloat32,
		float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), 0.1, 16777217}
	long := make([]float32, 100_000)
	for k := range long {
		long[k] = float32(k) / 3
	}
	sent := [][]float32{odd, long, {}}
	within(t,
		func(ctx context.Context) error {
			values := make([]*dist.Buffer, len(sent))
			for k, s := range sent {
				values[k] = b.buffer(s...)
			}
			return net.Send(ctx, dist.Message{T: 4, From: 1, To: 0, Values: values})
		},
		func(ctx context.Context) error {
			m, err := net.Recv(ctx, 0, 1, 4)
			if err != nil {
				return err
			}
			if len(m.Values) != len(sent) {
				return fmt.Errorf("%d vectors arrived of %d", len(m.Values), len(sent))
			}
			for k, s := range sent {
				if err := sameBits(b.read(m.Values[k]), s); err != nil {
					return fmt.Errorf("vector %d: %w", k, err)
				}
			}
			m.Release()
			return nil
		})
}

func sameBits(got, want []float32) error {
	if len(got) != len(want) {
		return fmt.Errorf("%d numbers arrived of %d", len(got), len(want))
	}
	for k := range want {
		if math.Float32bits(got[k]) != math.Float32bits(want[k]) {
			return fmt.Errorf("number %d is %v (%08x), want %v (%08x)", k, got[k], math.Float32bits(got[k]), want[k],
				math.Float32bits(want[k]))
		}
	}
	return nil
}

// checkSharing sends one buffer to two agents and retains it. The sender can read it after both
// have released it.
func checkSharing(t *testing.T, open func(t *testing.T, n int) dist.Transport) {
	net, b := open(t, 3), newFixture()
	own := b.buffer(7, 8)
	own.Retain(2)
	within(t, func(ctx context.Context) error {
		for to := 1; to <= 2; to++ {
			if err := net.Send(ctx, dist.Message{T: 0, From: 0, To: to, Values: []*dist.Buffer{own}}); err != nil {
				return err
			}
		}
		for self := 1; self <= 2; self++ {
			m, err := net.Recv(ctx, self, 0, 0)
			if err != nil {
				return err
			}
			if err := sameBits(b.read(m.Values[0]), []float32{7, 8}); err != nil {
				return fmt.Errorf("at agent %d: %w", self, err)
			}
			m.Release()
		}
		return nil
	})
	if err := sameBits(b.read(own), []float32{7, 8}); err != nil {
		t.Errorf("the sender's own buffer: %v", err)
	}
	own.Release()
}

// checkMany lets twelve agents exchange over random edges, each at its own speed.
func checkMany(t *testing.T, open func(t *testing.T, n int) dist.Transport) {
	const n, rounds = 12, 150
	net, b := open(t, n), newFixture()
	g, err := dist.ParseGraph("er(0.5)", n, 5)
	if err != nil {
		t.Fatal(err)
	}
	process, err := dist.ParseProcess("k-edges(3)", g, 5)
	if err != nil {
		t.Fatal(err)
	}
	agents := make([]func(ctx context.Context) error, n)
	for i := range agents {
		agents[i] = func(ctx context.Context) error { return exchange(ctx, net, b, process, i, rounds) }
	}
	within(t, agents...)
}

// exchange sends a value to every peer and receives theirs, at each iteration.
func exchange(ctx context.Context, net dist.Transport, b fixture, process dist.Process, self, rounds int) error {
	var events []dist.Event
	for t := range rounds {
		events = process.Active(events, t)
		for _, e := range events {
			if peer, ok := e.Peer(self); ok {
				if err := send(ctx, net, b, self, peer, t); err != nil {
					return err
				}
			}
		}
		for _, e := range events {
			if peer, ok := e.Peer(self); ok {
				if err := recv(ctx, net, b, self, peer, t); err != nil && !errors.Is(err, dist.ErrIdle) {
					return err
				}
			}
		}
	}
	return nil
}

// checkIndependence lets agents 2 and 3 run a hundred iterations ahead while agent 1 waits for
// agent 0, which sends to agent 2 before it sends to agent 1.
func checkIndependence(t *testing.T, open func(t *testing.T, n int) dist.Transport) {
	net, b := open(t, 4), newFixture()
	ahead := make(chan struct{})
	pair := func(self, peer int, done func()) func(ctx context.Context) error {
		return func(ctx context.Context) error {
			for k := range 100 {
				if err := send(ctx, net, b, self, peer, k); err != nil {
					return err
				}
				if err := recv(ctx, net, b, self, peer, k); err != nil {
					return err
				}
			}
			done()
			return nil
		}
	}
	within(t,
		pair(2, 3, func() { close(ahead) }),
		pair(3, 2, func() {}),
		func(ctx context.Context) error { return recv(ctx, net, b, 1, 0, 9) },
		func(ctx context.Context) error {
			if err := send(ctx, net, b, 0, 2, 200); err != nil {
				return err
			}
			select {
			case <-ahead:
			case <-ctx.Done():
				return errors.New("agents 2 and 3 did not get ahead while agent 1 was waiting")
			}
			if err := send(ctx, net, b, 0, 1, 9); err != nil {
				return err
			}
			return recv(ctx, net, b, 2, 0, 200)
		})
}

func checkIteration(t *testing.T, open func(t *testing.T, n int) dist.Transport) {
	net, b := open(t, 2), newFixture()
	within(t, func(ctx context.Context) error {
		if err := send(ctx, net, b, 0, 1, 41); err != nil {
			return err
		}
		m, err := net.Recv(ctx, 1, 0, 57)
		switch {
		case err == nil:
			return fmt.Errorf("awaiting iteration 57 returned %+v", m)
		case errors.Is(err, dist.ErrIdle) || ctx.Err() != nil:
			return fmt.Errorf("awaiting iteration 57 when 41 was sent returned %w; want an error that names both "+
				"iterations", err)
		case !strings.Contains(err.Error(), "41") || !strings.Contains(err.Error(), "57"):
			return fmt.Errorf("the error does not name both iterations: %w", err)
		}
		return nil
	})
}

// canceled runs part, cancels its context, and fails the test unless part returns soon with an
// error that pass accepts.
func canceled(t *testing.T, part func(ctx context.Context) error, pass func(err error) bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	result := make(chan error, 1)
	go func() { result <- part(ctx) }()
	time.Sleep(5 * time.Millisecond) // most likely part waits by now; the test is valid either way
	cancel()
	select {
	case err := <-result:
		if !pass(err) {
			t.Errorf("after the cancellation: %v", err)
		}
	case <-time.After(waitLimit):
		t.Fatal("did not return after the cancellation")
	}
}

func checkCanceledRecv(t *testing.T, open func(t *testing.T, n int) dist.Transport) {
	net, b := open(t, 2), newFixture()
	wantCanceled := func(err error) bool { return errors.Is(err, context.Canceled) }
	wait := func(ctx context.Context) error { _, err := net.Recv(ctx, 1, 0, 3); return err }
	canceled(t, wait, wantCanceled)
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	if err := wait(gone); !wantCanceled(err) {
		t.Errorf("with a canceled context: %v", err)
	}
	// The stream still works.
	within(t, func(ctx context.Context) error {
		if err := send(ctx, net, b, 0, 1, 3); err != nil {
			return err
		}
		return recv(ctx, net, b, 1, 0, 3)
	})
}

// checkCanceledSend sends more than the receiver takes. The transport may buffer it all, but must
// not ignore the cancellation.
func checkCanceledSend(t *testing.T, open func(t *testing.T, n int) dist.Transport) {
	net, b := open(t, 2), newFixture()
	canceled(t, func(ctx context.Context) error {
		for k := range 64 {
			if err := send(ctx, net, b, 0, 1, k); err != nil {
				return err
			}
		}
		return nil
	}, func(err error) bool { return err == nil || errors.Is(err, context.Canceled) })
}
