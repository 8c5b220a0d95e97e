package dist_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"fspda/device/devicetest"
	"fspda/dist"
	"fspda/internal/testing/disttest"
)

func TestLocalKeepsTheContract(t *testing.T) {
	disttest.TestTransport(t, func(t *testing.T, n int) dist.Transport { return dist.NewLocal(n) })
}

func message(p *dist.Pool, t, from, to int) dist.Message {
	return dist.Message{T: t, From: from, To: to, Values: []*dist.Buffer{p.Get(1)}}
}

// A sender may be two messages ahead of a receiver and blocks with the third until one is read.
func TestLocalSenderWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net, p := dist.NewLocal(2), dist.NewPool(devicetest.NewFloat64())
		ctx := context.Background()
		sent := 0
		go func() {
			for k := range 4 {
				if err := net.Send(ctx, message(p, k, 0, 1)); err != nil {
					t.Error(err)
				}
				sent++
			}
		}()
		for k, want := range []int{2, 3, 4, 4} {
			synctest.Wait()
			if sent != want {
				t.Errorf("%d were read and %d sent, want %d", k, sent, want)
			}
			m, err := net.Recv(ctx, 1, 0, k)
			if err != nil {
				t.Fatal(err)
			}
			m.Release()
		}
	})
}

// A blocked receiver returns the cause of the cancellation at once; synctest would report a
// goroutine left behind.
func TestLocalCancellation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net, p := dist.NewLocal(3), dist.NewPool(devicetest.NewFloat64())
		why := errors.New("the user pressed ctrl-c")
		ctx, cancel := context.WithCancelCause(context.Background())
		errs := make(chan error, 2)
		go func() { _, err := net.Recv(ctx, 0, 1, 0); errs <- err }()
		own := p.Get(1)
		own.Retain(3)
		go func() {
			for k := range 3 {
				if err := net.Send(ctx, dist.Message{T: k, From: 0, To: 2, Values: []*dist.Buffer{own}}); err != nil {
					errs <- err
				}
			}
		}()
		synctest.Wait()
		if len(errs) != 0 {
			t.Fatalf("returned before the cancellation: %v", <-errs)
		}
		cancel(why)
		for range 2 {
			if err := <-errs; !errors.Is(err, why) {
				t.Errorf("error %v, want %v", err, why)
			}
		}
		// The failed Send has released its buffer; the two pending messages have not.
		own.Release()
		own.Retain(0)
		for k := range 2 {
			m, err := net.Recv(context.Background(), 2, 0, k)
			if err != nil {
				t.Fatal(err)
			}
			m.Release()
		}
		if p.Get(1) != own {
			t.Error("the buffer of a canceled Send was not released")
		}
	})
}

// Nothing is copied: the receiver gets the sender's buffer.
func TestLocalSharesBuffers(t *testing.T) {
	net, p := dist.NewLocal(2), dist.NewPool(devicetest.NewFloat64())
	sent := message(p, 8, 1, 0)
	if err := net.Send(context.Background(), sent); err != nil {
		t.Fatal(err)
	}
	m, err := net.Recv(context.Background(), 0, 1, 8)
	if err != nil || m.Values[0] != sent.Values[0] {
		t.Errorf("got %+v, %v; want %+v", m, err, sent)
	}
}

func TestLocalPanics(t *testing.T) {
	net := dist.NewLocal(2)
	for name, f := range map[string]func(){
		"no agents":    func() { dist.NewLocal(0) },
		"to itself":    func() { _ = net.Send(context.Background(), dist.Message{From: 1, To: 1}) },
		"beyond":       func() { _ = net.Send(context.Background(), dist.Message{From: 0, To: 2}) },
		"from rank -1": func() { _, _ = net.Recv(context.Background(), 1, -1, 0) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}

func BenchmarkLocalExchange(b *testing.B) {
	net, p := dist.NewLocal(2), dist.NewPool(devicetest.NewFloat64())
	ctx := context.Background()
	stop := make(chan struct{})
	values := [2][]*dist.Buffer{{p.Get(1)}, {p.Get(1)}}
	side := func(self, k int) error {
		values[self][0].Retain(1)
		if err := net.Send(ctx, dist.Message{T: k, From: self, To: 1 - self, Values: values[self]}); err != nil {
			return err
		}
		m, err := net.Recv(ctx, self, 1-self, k)
		if err == nil {
			m.Release()
		}
		return err
	}
	b.ReportAllocs()
	go func() {
		defer close(stop)
		for k := range b.N {
			if err := side(1, k); err != nil {
				b.Error(err)
				return
			}
		}
	}()
	for k := range b.N {
		if err := side(0, k); err != nil {
			b.Fatal(err)
		}
	}
	<-stop
}
