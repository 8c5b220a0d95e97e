package text_test

import (
	"context"
	"errors"
	"iter"
	"os"
	"strings"
	"testing"

	"fspda/data/text"
)

// source returns documents of one letter each, and an error before the document at; -1: none.
func source(n, at int) text.Source {
	return func(ctx context.Context) iter.Seq2[[]byte, error] {
		return func(yield func([]byte, error) bool) {
			for i := range n {
				if i == at && !yield(nil, errors.New("the table is damaged")) {
					return
				}
				if ctx.Err() != nil || !yield([]byte{byte('a' + i%26)}, nil) {
					return
				}
			}
		}
	}
}

// Documents validate one in a hundred, or come from a source of their own, and the last one is cut.
func TestPrepareDocuments(t *testing.T) {
	for _, c := range []struct {
		val        text.Source
		most       int64
		train, has int64
	}{{nil, 0, 990, 10}, {nil, 300, 300, 4}, {source(7, -1), 0, 1000, 7}, {source(70, -1), 300, 300, 30}} {
		dir := t.TempDir()
		var told int64
		m, err := text.PrepareDocuments(t.Context(), source(1000, -1), c.val, text.Bytes{}, dir, text.DocumentOptions{
			Tokens: c.most, Progress: func(n int64) { told = n }})
		if err != nil {
			t.Fatal(err)
		}
		if m.Train.Tokens != c.train || m.Val.Tokens != c.has || m.Train.Bytes != c.train || told != c.train {
			t.Errorf("%+v and %+v, told %d, want %d and %d", m.Train, m.Val, told, c.train, c.has)
		}
		corpus, err := text.Open(dir, text.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if first, _ := corpus.Decode(corpus.Val[:2]); c.val == nil && string(first) != "aw" {
			t.Errorf("the first validation documents are %q", first) // documents 0 and 100
		}
		_ = corpus.Close()
	}
}

// A preparation that fails leaves nothing.
func TestPrepareDocumentsFails(t *testing.T) {
	stopped, stop := context.WithCancel(t.Context())
	stop()
	chars, err := text.CharsOf([]byte("abc"))
	if err != nil {
		t.Fatal(err)
	}
	gpt2, err := text.NewTokenizer("gpt2", "")
	if err != nil {
		t.Fatal(err)
	}
	for want, call := range map[string]func(dir string) (*text.Meta, error){
		"the table is damaged": func(dir string) (*text.Meta, error) {
			return text.PrepareDocuments(t.Context(), source(500, 300), nil, text.Bytes{}, dir, text.DocumentOptions{})
		},
		"context canceled": func(dir string) (*text.Meta, error) {
			return text.PrepareDocuments(stopped, source(500, -1), nil, text.Bytes{}, dir, text.DocumentOptions{})
		},
		"1 validation tokens": func(dir string) (*text.Meta, error) {
			return text.PrepareDocuments(t.Context(), source(1, -1), nil, text.Bytes{}, dir, text.DocumentOptions{})
		},
		"needs all characters": func(dir string) (*text.Meta, error) {
			return text.PrepareDocuments(t.Context(), source(1, -1), nil, chars, dir, text.DocumentOptions{})
		},
		"a document of 1 bytes that begins with \"\\xff\" cannot be tokenized": func(dir string) (*text.Meta, error) {
			return text.PrepareDocuments(t.Context(), func(context.Context) iter.Seq2[[]byte, error] {
				return func(yield func([]byte, error) bool) { yield([]byte{0xff}, nil) }
			}, nil, gpt2, dir, text.DocumentOptions{})
		},
	} {
		dir := t.TempDir()
		if _, err := call(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q in it", err, want)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%q leaves %v, error %v", want, left, err)
		}
	}
}
