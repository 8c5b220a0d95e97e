package text

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"runtime"
	"sync"

	"fspda/internal/wholefile"
)

// DocumentOptions configure [PrepareDocuments].
type DocumentOptions struct {
	Tokens   int64                // The length at which the training stream is cut; 0: it is not.
	Progress func(training int64) // Progress is called with the tokens written so far; it may be nil.
}

// heldOut is the distance between documents that become validation text, from the first document on,
// where no Source gives any.
const heldOut = 100

// Source returns documents, one after the other, until the context ends. The caller reads documents
// ahead. A nil in place of a document stops that until all documents before it were used: a source
// returns it before a file that is costly to open, as by a download.
type Source func(ctx context.Context) iter.Seq2[[]byte, error]

// PrepareDocuments tokenizes documents and writes the files of [Prepare] to the folder dir, without
// holding them in memory. Each document ends with the token for the end of a text, if the tokenizer
// has one. val may be nil: then one document in a hundred of train validates. With a limit of
// tokens the validation stream has at most a tenth of it.
func PrepareDocuments(ctx context.Context, train, val Source, t Tokenizer, dir string,
	o DocumentOptions) (m *Meta, err error) {
	if _, own := t.(*Chars); own {
		return nil, errors.New("text: the tokenizer char needs all characters of a text beforehand: use byte, gpt2 " +
			"or a tokenizer.json")
	}
	if !notExist(filepath.Join(dir, metaFile)) {
		return nil, &FormatError{Path: dir, Got: "it has the tokens of an earlier preparation", Want: "an empty folder",
			Hint: "choose another one, or remove these tokens"}
	}
	if err := checkFolder(dir, nil); err != nil {
		return nil, err
	}
	if err := makeFolder(dir); err != nil {
		return nil, err
	}
	m = &Meta{description: describe(t)}
	err = wholefile.PublishBy(filepath.Join(dir, "val.bin"), func(toVal io.Writer) error {
		return wholefile.PublishBy(filepath.Join(dir, "train.bin"), func(toTrain io.Writer) error {
			a, b := newStream(toTrain, t, o.Tokens), newStream(toVal, t, o.Tokens/10)
			if err := write(ctx, train, val, t, a, b, o.Progress); err != nil {
				return err
			}
			m.Train, m.Val = a.size, b.size
			if m.Train.Tokens == 0 || m.Val.Tokens == 0 {
				return m.tooShort(dir)
			}
			return errors.Join(a.out.Flush(), b.out.Flush())
		})
	})
	if err != nil {
		return nil, err
	}
	return m, m.publish(dir)
}

func write(ctx context.Context, train, val Source, t Tokenizer, toTrain, toVal *stream,
	progress func(int64)) error {
	i := -1
	err := encode(ctx, train, t, func(tokens []uint16) bool {
		if i++; val == nil && i%heldOut == 0 {
			toVal.add(tokens)
		} else {
			toTrain.add(tokens)
		}
		if progress != nil {
			progress(toTrain.size.Tokens)
		}
		return !toTrain.full()
	})
	if err == nil && val != nil {
		err = encode(ctx, val, t, func(tokens []uint16) bool { toVal.add(tokens); return !toVal.full() })
	}
	return err
}

type stream struct {
	out     *bufio.Writer
	size    Size
	most    int64 // The largest number of tokens; 0: there is no limit.
	lengths []int64
}

func newStream(w io.Writer, t Tokenizer, most int64) *stream {
	s := &stream{out: bufio.NewWriterSize(w, 1<<16), most: most, lengths: make([]int64, t.Size())}
	for id := range s.lengths {
		s.lengths[id] = int64(len(t.Token(uint16(id))))
	}
	if end, ok := separator(t); ok {
		s.lengths[end] = 0
	}
	return s
}

func (s *stream) full() bool { return s.most > 0 && s.size.Tokens >= s.most }

func (s *stream) add(tokens []uint16) {
	if left := s.most - s.size.Tokens; s.most > 0 && int64(len(tokens)) > left {
		tokens = tokens[:left]
	}
	for _, id := range tokens {
		_ = s.out.WriteByte(byte(id)) // Flush returns the error
		_ = s.out.WriteByte(byte(id >> 8))
		s.size.Bytes += s.lengths[id]
	}
	s.size.Tokens += int64(len(tokens))
}

// job is a group of documents that one goroutine tokenizes.
type job struct {
	done chan encoded  // The tokens come from it.
	last chan struct{} // Closed when the tokens have been handed over; may be nil.
}

type encoded struct {
	tokens [][]uint16
	err    error
}

// jobBytes is about how much text one job has.
const jobBytes = 1 << 18

// reader makes jobs of documents.
type reader struct {
	t    Tokenizer
	jobs chan job // one for each document, in order
	wg   sync.WaitGroup
}

// read reads documents to the end, or until the context ends.
func (r *reader) read(ctx context.Context, docs Source) {
	defer close(r.jobs)
	var texts [][]byte
	size := 0
	send := func(err error, last chan struct{}) bool {
		j, of := job{make(chan encoded, 1), last}, texts
		texts, size = nil, 0
		if err != nil {
			j.done <- encoded{err: err}
		} else {
			r.wg.Go(func() { j.done <- encodeAll(of, r.t) })
		}
		select {
		case r.jobs <- j:
			return true
		case <-ctx.Done():
			return false
		}
	}
	for text, err := range docs(ctx) {
		switch {
		case err != nil:
			_ = send(nil, nil) && send(err, nil) // it ends in both cases
			return
		case text == nil:
			last := make(chan struct{})
			if !send(nil, last) {
				return
			}
			select {
			case <-last:
			case <-ctx.Done():
				return
			}
		default:
			texts, size = append(texts, text), size+len(text)
			if size >= jobBytes && !send(nil, nil) {
				return
			}
		}
	}
	send(nil, nil)
}

// encode tokenizes documents on all cores, and hands their tokens over in the order of the
// documents, until more returns false.
func encode(ctx context.Context, docs Source, t Tokenizer, more func(tokens []uint16) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	r := reader{t: t, jobs: make(chan job, runtime.GOMAXPROCS(0))}
	defer r.wg.Wait()
	defer cancel()
	r.wg.Go(func() { r.read(ctx, docs) })
	for j := range r.jobs {
		of := <-j.done
		if of.err != nil {
			return of.err
		}
		for _, tokens := range of.tokens {
			if !more(tokens) {
				return nil
			}
		}
		if j.last != nil {
			close(j.last)
		}
	}
	return ctx.Err()
}

// encodeAll tokenizes documents, each with the token for its end.
func encodeAll(texts [][]byte, t Tokenizer) (r encoded) {
	end, ends := separator(t)
	for _, text := range texts {
		tokens, err := t.Encode(nil, text)
		if err != nil {
			return encoded{err: fmt.Errorf("text: a document of %d bytes that begins with %.40q cannot be tokenized: "+
				"%w", len(text), text, err)}
		}
		if ends {
			tokens = append(tokens, end)
		}
		r.tokens = append(r.tokens, tokens)
	}
	return r
}
