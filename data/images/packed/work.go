package packed

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"sync"

	"fspda/data/images"
)

type work struct {
	dir     string
	journal *journal
	options Options
	set     *images.Set

	done, bad int // images so far, for Progress
}

type list struct {
	name   string
	source images.Source
}

func (w *work) splits() []list { return splits(w.set) }

func splits(s *images.Set) []list {
	var all []list
	if s.Train != nil {
		all = append(all, list{"train", s.Train})
	}
	if s.Test != nil {
		all = append(all, list{"test", s.Test})
	}
	return all
}

// part summarizes the journal of a split.
func (l list) part(entries []entry, classes int) Part {
	p := Part{PerClass: make([]int, classes)}
	left := map[int]bool{}
	for _, e := range entries {
		if e.Split != l.name {
			continue
		}
		if e.Shard != nil {
			p.Shards = append(p.Shards, *e.Shard)
			p.Pictures += e.Shard.Rows
		}
		for _, b := range e.Bad {
			left[b.Index] = true
			p.Bad++
		}
	}
	for i := range l.source.Len() {
		if !left[i] {
			p.PerClass[l.source.Label(i)]++
		}
	}
	return p
}

// all packs the rest of both splits.
func (w *work) all(ctx context.Context) error {
	for _, l := range w.splits() {
		at, _ := w.journal.next(l.name)
		w.done += at
	}
	for _, e := range w.journal.entries {
		w.bad += len(e.Bad)
	}
	w.options.Progress(w.done, w.bad)
	for _, l := range w.splits() {
		if err := w.split(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

// split packs the rest of a split.
func (w *work) split(ctx context.Context, l list) error {
	ctx, stop := context.WithCancel(ctx)
	first, shards := w.journal.next(l.name)
	results, wait := w.results(ctx, l, first)
	defer wait()
	defer stop()
	o := &output{work: w, list: l, shards: shards, next: first, before: newPrefix(l.source)}
	for promise := range results {
		select {
		case r := <-promise:
			if err := o.take(r); err != nil {
				o.abandon()
				return err
			}
		case <-ctx.Done():
			o.abandon()
			return ctx.Err()
		}
	}
	if err := ctx.Err(); err != nil {
		o.abandon()
		return err
	}
	return o.finish()
}

type result struct {
	row
	err error
}

// results converts the images from first on with all workers, and delivers them in order. Each
// worker has a few in flight, which bounds memory. wait waits for the workers, which end with ctx.
func (w *work) results(ctx context.Context, l list, first int) (in <-chan (<-chan result), wait func()) {
	type job struct {
		i  int
		to chan<- result
	}
	jobs := make(chan job)
	order := make(chan (<-chan result), 4*w.options.Jobs)
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(order)
		defer close(jobs)
		for i := first; i < l.source.Len(); i++ {
			to := make(chan result, 1)
			select {
			case order <- to:
			case <-ctx.Done():
				return
			}
			select {
			case jobs <- job{i, to}:
			case <-ctx.Done():
				return
			}
		}
	})
	for range w.options.Jobs {
		wg.Go(func() {
			c := converter{path: w.set.Path, settings: w.options.Settings, maxPixels: w.options.MaxPixels}
			for j := range jobs {
				r, err := c.row(l.source, j.i)
				j.to <- result{r, err}
			}
		})
	}
	return order, wg.Wait
}

// output writes the images of a split in order.
type output struct {
	work   *work
	list   list
	shards int // finished
	next   int // picture
	before *prefix
	shard  *shardWriter
	bad    []Bad // since the last entry of the journal
}

func (o *output) take(r result) error {
	w := o.work
	i := o.next
	o.next++
	w.done++
	if r.err != nil {
		if w.options.Fail || isDisk(r.err) {
			return fmt.Errorf("packed: %w", r.err)
		}
		w.bad++
		w.options.Progress(w.done, w.bad)
		o.bad = append(o.bad, Bad{Split: o.list.name, Index: i, Name: placeOf(o.list.source, i, r.err),
			Reason: reason(r.err)})
		return nil
	}
	if o.shard == nil {
		s, err := newShard(filepath.Join(w.dir, shardName(o.list.name, o.shards)), w.options.Settings)
		if err != nil {
			return err
		}
		o.shard = s
	}
	if err := o.shard.add(r.row); err != nil {
		return err
	}
	w.options.Progress(w.done, w.bad)
	if o.shard.size >= w.options.ShardBytes {
		return o.close()
	}
	return nil
}

// close finishes the shard and records it.
func (o *output) close() error {
	s, err := o.shard.finish()
	o.shard = nil
	if err != nil {
		return err
	}
	o.shards++
	return o.record(&s)
}

// record adds an entry to the journal.
func (o *output) record(s *Shard) error {
	e := entry{Split: o.list.name, Next: o.next, Source: o.before.sum(o.next), End: o.next == o.list.source.Len(),
		Shard: s, Bad: o.bad}
	o.bad = nil
	return o.work.journal.add(e)
}

// finish ends the split: its last shard, or the last bad images.
func (o *output) finish() error {
	switch {
	case o.shard != nil:
		return o.close()
	case len(o.bad) > 0:
		return o.record(nil)
	}
	return nil
}

func (o *output) abandon() {
	if o.shard != nil {
		o.shard.abandon()
	}
}

// reason returns the cause of a bad image, without its name.
func reason(err error) string {
	if p, ok := errors.AsType[*images.PictureError](err); ok {
		return p.Err.Error()
	}
	return err.Error()
}

// placeOf names a bad image, of a table by its file and row.
func placeOf(s images.Source, i int, err error) string {
	if p, ok := errors.AsType[*images.PictureError](err); ok {
		return p.Name
	}
	return nameOf(s, i)
}

func nameOf(s images.Source, i int) string {
	return cmp.Or(s.Name(i), fmt.Sprint(i))
}

// prefix hashes the first images of a source, by label, size and name.
type prefix struct {
	source images.Source
	hash   hash.Hash
	n      int
}

func newPrefix(s images.Source) *prefix { return &prefix{source: s, hash: sha256.New()} }

// sum returns the SHA-256 over the first n images. n may not decrease.
func (p *prefix) sum(n int) string {
	for ; p.n < n; p.n++ {
		fmt.Fprintf(p.hash, "%d %d %s\n", p.source.Label(p.n), max(0, p.source.Bytes(p.n)), nameOf(p.source, p.n))
	}
	return hex.EncodeToString(p.hash.Sum(nil))
}

// fingerprint identifies a set by its images and classes.
func fingerprint(s *images.Set) string {
	h := sha256.New()
	for _, l := range splits(s) {
		fmt.Fprintf(h, "%s %d %s\n", l.name, l.source.Len(), newPrefix(l.source).sum(l.source.Len()))
	}
	for _, c := range s.Classes {
		fmt.Fprintln(h, c)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// writeBad lists the images that were left out, one JSON object per line.
func writeBad(path string, bad []Bad) error {
	if len(bad) == 0 {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return writing(path, err)
		}
		return nil
	}
	return writeFile(path, func(w io.Writer) error {
		e := json.NewEncoder(w)
		for _, b := range bad {
			if err := e.Encode(b); err != nil {
				return err
			}
		}
		return nil
	})
}
