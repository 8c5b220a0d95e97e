package acceptance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// compilePart is the compilation of the peer's networks of the headline.
const compilePart = "pytorch/compile"

// compilePeer has PyTorch compile the networks of the headline into its cache on disk, one process
// for each. They start after the parts that are alone, beside those that are not timed, since a cold
// compilation takes as long as the part that measures the network. The turn of this part waits for
// them.
func (o *Options) compilePeer() Part {
	var c *compilation
	return Part{Name: compilePart, Limit: o.limit(60 * time.Second),
		Begin: func(ctx context.Context) { c = o.beginCompilation(ctx) },
		Run:   func(ctx context.Context, b *job) error { return c.wait(ctx, b) }}
}

// compilation is the processes that compile.
type compilation struct {
	stop context.CancelFunc
	all  sync.WaitGroup
	of   []compiled
}

// compiled is a network that a process compiles.
type compiled struct {
	request map[string]any
	seconds float64
	err     error
}

// beginCompilation starts the processes, none if PyTorch was not asked for.
func (o *Options) beginCompilation(ctx context.Context) *compilation {
	ctx, stop := context.WithCancel(ctx)
	c := &compilation{stop: stop}
	if o.Python == "" {
		return c
	}
	s := o.shapes()
	for _, precision := range o.judged() {
		c.of = append(c.of, compiled{request: gradient{s.network, precision, s.batches[0], s.pixels[0]}.request()})
	}
	if o.Lacks[s.language.precision] == "" {
		c.of = append(c.of, compiled{request: s.language.request()})
	}
	for i := range c.of {
		c.all.Go(func() {
			began := time.Now()
			c.of[i].err = o.compile(ctx, c.of[i].request)
			c.of[i].seconds = time.Since(began).Seconds()
		})
	}
	return c
}

// compile has a process of its own run a request once.
func (o *Options) compile(ctx context.Context, request map[string]any) error {
	dir, err := os.MkdirTemp(o.Out, ".part-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) // leftovers are harmless
	p, _, err := newPeer(ctx, o.Python, o.Device, dir, io.Discard)
	if err != nil {
		return err
	}
	defer p.close()
	request["compiled"], request["seconds"] = true, 0
	_, why, err := p.time(ctx, request)
	if why != "" {
		err = errors.New(why)
	}
	return err
}

// wait waits until all have ended, or ends them with the context. A network that was not compiled
// is noted: the part that measures it compiles it then.
func (c *compilation) wait(ctx context.Context, b *job) error {
	stopped := context.AfterFunc(ctx, c.stop)
	c.all.Wait()
	stopped()
	c.stop()
	longest := 0.0
	for _, n := range c.of {
		longest = max(longest, n.seconds)
		if n.err != nil {
			b.out.note(fmt.Sprintf("the %v in %v: %v", n.request["kind"], n.request["precision"], n.err))
		}
	}
	b.out.set("seconds", longest)
	b.out.Summary = fmt.Sprintf("PyTorch compiled %d networks in %.0f s", len(c.of)-len(b.out.Notes), longest)
	return ctx.Err()
}
