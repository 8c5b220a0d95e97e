package nats

import (
	"context"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	credential "google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"fspda/cpu"
	"fspda/dist"
)

// withDirect gives every node a direct server on this machine, and vectors from which large
// messages are sent and into which they are received without a copy.
func withDirect(o *Options) {
	o.Dim, o.Direct.Listen, o.Pool = largeDim, "127.0.0.1:0", dist.NewPool(cpu.New())
}

// largeDim values make a message large enough for a direct link.
const largeDim = 300_000

// directFrames waits until large messages from agent 0 to agent 1 use the direct link, and returns
// the next iteration.
func (m mesh) directFrames(t *testing.T, first int) int {
	t.Helper()
	for k := first; k < first+200; k++ {
		before := m[1].Stats().Direct
		swap(t, m, largeDim, k, k+1)
		if m[1].Stats().Direct > before {
			return k + 1
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("no large message used the direct link")
	return 0
}

// Large messages use the direct link, small ones do not, and both arrive in order.
func TestDirect(t *testing.T) {
	m := openMesh(t, 2, withDirect)
	k := m.directFrames(t, 0)
	before := m[1].Stats().Direct
	swap(t, m, 10, k, k+5)
	if got := m[1].Stats().Direct; got != before {
		t.Errorf("%d frames of small messages used the direct link", got-before)
	}
	swap(t, m, largeDim, k+5, k+8)
	if got := m[1].Stats().Direct - before; got < 3 {
		t.Errorf("%d frames of 3 large messages used the direct link", got)
	}
}

// With certificates the direct server accepts only agents of the run, each under its own rank.
func TestDirectWithCertificates(t *testing.T) {
	dir := t.TempDir()
	if err := WriteCredentials(dir, "test", 3, time.Hour); err != nil {
		t.Fatal(err)
	}
	m := openMesh(t, 2, func(o *Options) {
		withDirect(o)
		o.TLS = credentials(t, dir, "test", o.Self)
	})
	k := m.directFrames(t, 0)
	other := t.TempDir()
	if err := WriteCredentials(other, "test2", 2, time.Hour); err != nil {
		t.Fatal(err)
	}
	abroad := credentials(t, other, "test2", 1)
	abroad.agent.run = "test" // it accepts any server
	abroad.agent.pool = credentials(t, dir, "test", 1).agent.pool
	offer := m[0].direct.offer
	for name, c := range map[string]struct {
		as     int // rank of the certificate; -1: none; -2: one of another run
		from   string
		token  string
		reason codes.Code
	}{
		"own rank":           {1, "1", offer.Token, codes.OK},
		"another rank":       {2, "1", offer.Token, codes.PermissionDenied},
		"wrong token":        {1, "1", "guess", codes.PermissionDenied},
		"rank out of range":  {1, "7", offer.Token, codes.PermissionDenied},
		"no certificate":     {-1, "1", offer.Token, codes.Unavailable},
		"of another run":     {-2, "1", offer.Token, codes.Unavailable},
		"rank of the server": {0, "0", offer.Token, codes.PermissionDenied},
	} {
		creds := insecure.NewCredentials()
		if c.as >= 0 {
			creds = (&Node{opt: Options{TLS: credentials(t, dir, "test", c.as)}}).dialCredentials(0)
		}
		if c.as == -2 {
			creds = (&Node{opt: Options{TLS: abroad}}).dialCredentials(0)
		}
		ctx := metadata.AppendToOutgoingContext(testContext(t), tokenKey, c.token, fromKey, c.from)
		if err := openStream(ctx, t, offer.Addresses[0], creds, c.reason == codes.OK); status.Code(err) != c.reason {
			t.Errorf("%s: %v, want %v", name, err, c.reason)
		}
	}
	// The server at agent 0's address must be that of agent 0.
	wrong := &directLink{peer: &peer{node: m[1], id: 2}}
	if _, _, err := wrong.dial(testContext(t), offer.Addresses[0], offer.Token); err == nil {
		t.Error("agent 0's server was accepted as that of agent 2")
	}
	swap(t, m, largeDim, k, k+2)
}

// openStream opens a stream to a direct server and returns the error with which the server ends it,
// if it is not accepted.
func openStream(ctx context.Context, t *testing.T, address string, creds credential.TransportCredentials,
	accepted bool) error {
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(creds))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	s, err := conn.NewStream(ctx, &frameStream, framePath, grpc.ForceCodecV2(frameCodec{}))
	if err != nil {
		return err
	}
	if _, err = s.Header(); err == nil && !accepted {
		err = s.RecvMsg(&inFrame{}) // only the end of the stream can arrive
	}
	return err
}

// If the direct server cannot be reached, or closes, large messages go over NATS and nothing is
// lost.
func TestFallsBackToNATS(t *testing.T) {
	m := openMesh(t, 2, func(o *Options) {
		withDirect(o)
		o.Direct.Advertise = "127.0.0.2" // no server listens there
	})
	swap(t, m, largeDim, 0, 4)
	if a, b := m[0].Stats(), m[1].Stats(); a.Direct+b.Direct != 0 {
		t.Errorf("a link to an unreachable server is connected: %+v %+v", a, b)
	}
	m[0].Close()
	m[1].Close()

	m = openMesh(t, 2, withDirect)
	k := m.directFrames(t, 0)
	var rest sync.WaitGroup
	rest.Go(func() { swap(t, m, largeDim, k, k+8) })
	time.Sleep(5 * time.Millisecond)
	m[1].direct.server.Stop() // while messages are in flight
	rest.Wait()
	before := m[1].Stats().Direct
	swap(t, m, largeDim, k+8, k+10)
	if m[1].Stats().Direct != before {
		t.Error("a link to a closed server is connected")
	}
}

// A direct link may lose and duplicate fragments, like NATS.
func TestDirectLosesPieces(t *testing.T) {
	var mu sync.Mutex
	n := 0
	m := openMesh(t, 2, func(o *Options) {
		withDirect(o)
		o.requestDelay = 4 * time.Millisecond
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
	k := m.directFrames(t, 0)
	swap(t, m, largeDim, k, k+4)
}

// The last messages before Close arrive, large or small.
func TestDirectDrainsOnClose(t *testing.T) {
	m := openMesh(t, 2, withDirect)
	k := m.directFrames(t, 0)
	ctx := testContext(t)
	for i := range 3 {
		if err := send(ctx, m[0], 1, k+i, ramp(0, k+i, largeDim)); err != nil {
			t.Fatal(err)
		}
	}
	m[0].Close()
	for i := range 3 {
		if _, err := receive(ctx, m[1], 0, k+i); err != nil {
			t.Fatal(err)
		}
	}
}

// Garbage on a stream of an agent ends the stream and has no other effect.
func TestDirectGarbage(t *testing.T) {
	m := openMesh(t, 2, withDirect)
	k := m.directFrames(t, 0)
	offer := m[0].direct.offer
	next := m[0].peers[1].in[exchanges].next
	good := frame{kind: kindData, from: 1, run: m[0].runHash, incarnation: m[1].incarnation, seq: next + 1, total: 3,
		raw:     3,
		payload: []byte("abc")}
	whole := appendFrame(nil, &good)
	good.flags = flagTrustedChannel
	guarded := appendFrame(nil, &good)
	guarded[40]++ // the iteration in its header
	ack := appendFrame(nil, &frame{kind: kindAck, from: 1, run: m[0].runHash, incarnation: m[1].incarnation,
		payload: (&ack{}).append(nil)})
	for name, b := range map[string][]byte{
		"noise": []byte("not a frame at all, but long enough to hold a header of eighty bytes, and a few more bytes " +
			"behind it" +
			"glance, am I not?"),
		"empty":       {},
		"not data":    make([]byte, maxChunk+headerSize+1),
		"cut":         whole[:len(whole)-1],
		"changed":     guarded,
		"not of data": ack,
	} {
		w := &directLink{peer: &peer{node: m[1], id: 0}}
		ctx, cancel := context.WithCancel(testContext(t))
		conn, stream, err := w.dial(ctx, offer.Addresses[0], offer.Token)
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
