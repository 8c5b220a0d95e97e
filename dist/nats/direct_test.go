package nats

import (
	"context"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"fspda/cpu"
	"fspda/dist"
)

// doors gives every node a door of this machine, and vectors that large messages are sent from and
// received into without a copy.
func doors(o *Options) {
	o.Dim, o.Direct.Listen, o.Pool = largeDim, "127.0.0.1:0", dist.NewPool(cpu.New())
}

// largeDim values are a message for the direct way.
const largeDim = 300_000

// direct waits until large messages go the direct way from agent 0 to agent 1, and returns the next
// iteration.
func (m mesh) direct(t *testing.T, first int) int {
	t.Helper()
	for k := first; k < first+200; k++ {
		before := m[1].Stats().Direct
		swap(t, m, largeDim, k, k+1)
		if m[1].Stats().Direct > before {
			return k + 1
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("no large message took the direct way")
	return 0
}

// Large messages take the direct way, small ones do not, and both arrive in order.
func TestDirect(t *testing.T) {
	m := openMesh(t, 2, doors)
	k := m.direct(t, 0)
	before := m[1].Stats().Direct
	swap(t, m, 10, k, k+5)
	if got := m[1].Stats().Direct; got != before {
		t.Errorf("%d frames of small messages took the direct way", got-before)
	}
	swap(t, m, largeDim, k+5, k+8)
	if got := m[1].Stats().Direct - before; got < 3 {
		t.Errorf("%d frames of 3 large messages took the direct way", got)
	}
}

// With certificates the door opens to the run's members alone, each as itself.
func TestDirectWithCertificates(t *testing.T) {
	dir := t.TempDir()
	if err := WriteCredentials(dir, "test", 3, time.Hour); err != nil {
		t.Fatal(err)
	}
	m := openMesh(t, 2, func(o *Options) {
		doors(o)
		o.TLS = credentials(t, dir, "test", o.Self)
	})
	k := m.direct(t, 0)
	other := t.TempDir()
	if err := WriteCredentials(other, "test2", 2, time.Hour); err != nil {
		t.Fatal(err)
	}
	abroad := credentials(t, other, "test2", 1)
	abroad.member.run = "test" // it does not mind who answers
	abroad.member.pool = credentials(t, dir, "test", 1).member.pool
	sign := m[0].door.sign
	for name, c := range map[string]struct {
		as     int // whose certificate; -1: none; -2: one of another run
		from   string
		token  string
		reason codes.Code
	}{
		"as itself":          {1, "1", sign.Token, codes.OK},
		"as another":         {2, "1", sign.Token, codes.PermissionDenied},
		"without the word":   {1, "1", "guess", codes.PermissionDenied},
		"as nobody":          {1, "7", sign.Token, codes.PermissionDenied},
		"no certificate":     {-1, "1", sign.Token, codes.Unavailable},
		"of another run":     {-2, "1", sign.Token, codes.Unavailable},
		"as the node itself": {0, "0", sign.Token, codes.PermissionDenied},
	} {
		creds := insecure.NewCredentials()
		if c.as >= 0 {
			creds = (&Node{opt: Options{TLS: credentials(t, dir, "test", c.as)}}).transport(0)
		}
		if c.as == -2 {
			creds = (&Node{opt: Options{TLS: abroad}}).transport(0)
		}
		conn, err := grpc.NewClient("passthrough:///"+sign.Places[0], grpc.WithTransportCredentials(creds))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		ctx := metadata.AppendToOutgoingContext(patient(t), tokenKey, c.token, fromKey, c.from)
		s, err := conn.NewStream(ctx, &frameStream, framePath, grpc.ForceCodecV2(frameCodec{}))
		if err == nil {
			if _, err = s.Header(); err == nil && c.reason != codes.OK {
				err = s.RecvMsg(&inFrame{}) // never anything but the end
			}
		}
		if got := status.Code(err); got != c.reason {
			t.Errorf("%s: %v, want %v", name, err, c.reason)
		}
	}
	// Whoever stands at agent 0's place must be agent 0.
	wrong := &way{peer: &peer{node: m[1], id: 2}}
	if _, _, err := wrong.try(patient(t), sign.Places[0], sign.Token); err == nil {
		t.Error("agent 0's door was taken for that of agent 2")
	}
	swap(t, m, largeDim, k, k+2)
}

// Where the door cannot be reached, or is gone, large messages go over NATS, and nothing is lost.
func TestNATSWhereNoDirectWay(t *testing.T) {
	m := openMesh(t, 2, func(o *Options) {
		doors(o)
		o.Direct.Advertise = "127.0.0.2" // nobody listens there
	})
	swap(t, m, largeDim, 0, 4)
	if a, b := m[0].Stats(), m[1].Stats(); a.Direct+b.Direct != 0 {
		t.Errorf("a door that cannot be reached was entered: %+v %+v", a, b)
	}
	m[0].Close()
	m[1].Close()

	m = openMesh(t, 2, doors)
	k := m.direct(t, 0)
	var rest sync.WaitGroup
	rest.Go(func() { swap(t, m, largeDim, k, k+8) })
	time.Sleep(5 * time.Millisecond)
	m[1].door.server.Stop() // in the middle of it
	rest.Wait()
	before := m[1].Stats().Direct
	swap(t, m, largeDim, k+8, k+10)
	if m[1].Stats().Direct != before {
		t.Error("a closed door was entered")
	}
}

// A direct way that loses and doubles pieces is no worse than NATS that does.
func TestDirectLosesPieces(t *testing.T) {
	var mu sync.Mutex
	n := 0
	m := openMesh(t, 2, func(o *Options) {
		doors(o)
		o.firstAsk = 4 * time.Millisecond
		o.fault = func(f *frame) int {
			if f.kind != kindData {
				return 1
			}
			mu.Lock()
			defer mu.Unlock()
			n++
			return []int{1, 1, 0, 1, 2}[n%5]
		}
	})
	k := m.direct(t, 0)
	swap(t, m, largeDim, k, k+4)
}

// What a node says last arrives, large or small.
func TestDirectLastWords(t *testing.T) {
	m := openMesh(t, 2, doors)
	k := m.direct(t, 0)
	ctx := patient(t)
	for i := range 3 {
		if err := say(ctx, m[0], 1, k+i, ramp(0, k+i, largeDim)); err != nil {
			t.Fatal(err)
		}
	}
	m[0].Close()
	for i := range 3 {
		if _, err := listen(ctx, m[1], 0, k+i); err != nil {
			t.Fatal(err)
		}
	}
}

// Garbage over a stream of a member ends the stream and nothing else.
func TestDirectGarbage(t *testing.T) {
	m := openMesh(t, 2, doors)
	k := m.direct(t, 0)
	sign := m[0].door.sign
	next := m[0].peers[1].in[exchanges].next
	good := frame{kind: kindData, from: 1, run: m[0].run, life: m[1].life, seq: next + 1, total: 3, raw: 3,
		piece: []byte("abc")}
	whole := appendFrame(nil, &good)
	good.flags = flagGuarded
	guarded := appendFrame(nil, &good)
	guarded[40]++ // its iteration
	ack := appendFrame(nil, &frame{kind: kindAck, from: 1, run: m[0].run, life: m[1].life, piece: (&ack{}).append(nil)})
	for name, b := range map[string][]byte{
		"noise":       []byte("hello, I am a frame of some sort, and quite a long one, as everybody can see at a glance, am I not?"),
		"empty":       {},
		"too long":    make([]byte, maxChunk+headerSize+1),
		"cut":         whole[:len(whole)-1],
		"changed":     guarded,
		"not of data": ack,
	} {
		w := &way{peer: &peer{node: m[1], id: 0}}
		ctx, cancel := context.WithCancel(patient(t))
		conn, stream, err := w.try(ctx, sign.Places[0], sign.Token)
		if err != nil {
			t.Fatal(err)
		}
		_ = stream.SendMsg(&outFrame{header: b})
		if err := stream.RecvMsg(&inFrame{}); status.Code(err) != codes.InvalidArgument &&
			status.Code(err) != codes.ResourceExhausted {
			t.Errorf("%s: %v, want the end of the stream", name, err)
		}
		cancel()
		_ = conn.Close()
	}
	swap(t, m, largeDim, k, k+3)
}
