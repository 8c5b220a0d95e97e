package data

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	"fspda/data/text"
)

const (
	defaultWindow    = 64
	defaultTextTrain = 1_000_000 // characters of the synthetic text
	defaultTextTest  = 100_000
	// longest training stream whose documents are counted for a partition that does not need them
	countedTokens = 1 << 26
)

func openText(o OpenOptions) (*Set, error) {
	if o.Dir == "" {
		return nil, fmt.Errorf("data: set text: no path given: name a folder with .txt files, a .txt file, or a " +
			"folder that fspda data prepare text, nanoGPT or llm.c wrote, or train on the built-in set synthetic-text")
	}
	c, err := text.Open(o.Dir, text.OpenOptions{Tokenizer: strings.TrimPrefix(o.Tokenizer, "auto")})
	if err != nil {
		return nil, fmt.Errorf("data: set text: %w", err)
	}
	return fromText("text", c, o)
}

func openSyntheticText(o OpenOptions) (*Set, error) {
	c, err := text.Synthetic(o.Seed, cmp.Or(o.TrainSize, defaultTextTrain), cmp.Or(o.TestSize, defaultTextTest))
	if err != nil {
		return nil, fmt.Errorf("data: set synthetic-text: %w", err)
	}
	s, err := fromText("synthetic-text", c, o)
	if err == nil {
		s.Floor = text.Entropy()
	}
	return s, err
}

func fromText(name string, c *text.Corpus, o OpenOptions) (*Set, error) {
	window := cmp.Or(o.Window, defaultWindow)
	if o.Agents > 0 {
		if longest := min(len(c.Train)/o.Agents, len(c.Val)) - 1; longest > 0 {
			window = min(window, longest)
		}
	}
	s, err := FromText(name, c, window)
	if err == nil && o.Augment != "" && o.Augment != "auto" && o.Augment != None {
		err = fmt.Errorf("data: set %s: augmentation %s is for pictures: use none", name, o.Augment)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return s, nil
}

// FromText makes a set of a text: its examples are windows of tokens, of which each predicts
// the next one. The classes are the tokens of the vocabulary. The Set closes the text. It returns
// an error for a stream that is shorter than a window and its next token.
func FromText(name string, c *text.Corpus, window int) (*Set, error) {
	if window < 1 {
		return nil, fmt.Errorf("data: set %s: windows of %d tokens, want at least 1", name, window)
	}
	if c.Vocabulary < 2 {
		return nil, fmt.Errorf("data: set %s: a vocabulary of %d tokens, want at least 2: is the text all one "+
			"character?", name, c.Vocabulary)
	}
	s := &Set{Name: name, Shape: []int{window}, Classes: c.Vocabulary, Text: c, close: c.Close}
	for _, half := range []struct {
		name string
		from []uint16
		to   *Split
	}{{"training", c.Train, &s.Train}, {"validation", c.Val, &s.Test}} {
		if len(half.from) < window+1 {
			return nil, fmt.Errorf("data: set %s: the %s text has %d tokens, want at least %d, a window of %d and its "+
				"next token: use a longer text or a shorter window (block)", name, half.name, len(half.from), window+1,
				window)
		}
		*half.to = Split{shape: volume(s.Shape), variation: variation{augment: None},
			windows: newWindows(half.from, window, int64(len(half.from)))}
	}
	if !c.Mapped() {
		s.Memory = 2 * int64(len(c.Train)+len(c.Val))
	}
	s.print = sync.OnceValue(func() string { return hashText(c, window) })
	s.bytesPerToken = sync.OnceValue(func() float64 { return float64(c.Bytes(c.Val)) / float64(len(c.Val)) })
	return s, nil
}

// Tokenizers lists the tokenizers of this program.
func Tokenizers() []string { return text.Names() }

// BytesPerToken is the mean length of the tokens of the validation text as text; 0: the set is not
// a text, or its tokenizer is not known.
func (s *Set) BytesPerToken() float64 {
	if s.Text == nil {
		return 0
	}
	return s.bytesPerToken()
}

// hashText identifies a text as a run sees it: both streams, the vocabulary and the window.
func hashText(c *text.Corpus, window int) string {
	h := sha256.New()
	var head []byte
	for _, n := range []int{c.Vocabulary, window, len(c.Train), len(c.Val)} {
		head = binary.LittleEndian.AppendUint64(head, uint64(n))
	}
	h.Write(head)
	for _, tokens := range [][]uint16{c.Train, c.Val} {
		if binary.NativeEndian.Uint16([]byte{1, 0}) == 1 {
			h.Write(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(tokens))), 2*len(tokens)))
			continue
		}
		for part := range slices.Chunk(tokens, 4096) {
			head = head[:0]
			for _, t := range part {
				head = binary.LittleEndian.AppendUint16(head, t)
			}
			h.Write(head)
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

func (s *Set) divideText(p Partition, agents int, seed uint64) (d Division, err error) {
	d.Set = s
	if agents < 1 {
		return d, fmt.Errorf("data: %d agents, want at least 1", agents)
	}
	tokens, length := s.Text.Train, s.Train.windows.length
	shared := *s
	d.Set = &shared
	tooShort := func(agent int, n int64) error {
		return fmt.Errorf("data: agent %d has %d tokens, want at least %d, a window of T = %d and its next token: use "+
			"fewer agents, a longer text, or a shorter window (block)", agent, n, length+1, length)
	}
	var ends []int64
	switch p := p.(type) {
	case Contiguous:
		if agents > len(tokens) { // before memory is taken for each of them
			return d, tooShort(0, int64(len(tokens)/agents))
		}
		ends = p.ends(int64(len(tokens)), agents)
		d.counts = func() [][]int { return s.countSlices(ends) }
	case documentPartition:
		docs, err := s.documents()
		if err != nil {
			return d, fmt.Errorf("data: %w", err)
		}
		shards, err := p.deal(docs, agents, seed)
		if err != nil {
			return d, fmt.Errorf("data: %w", err)
		}
		tokens, ends = docs.join(tokens, shards)
		shared.Memory += 2 * int64(len(tokens))
		d.counts = func() [][]int { return docs.count(shards) }
	default:
		return d, errors.New("data: it does not divide text: use contiguous, or one that deals documents: " +
			"shuffled, sorted, by-class, dirichlet, dirichlet-equal or file")
	}
	w := newWindows(tokens, length, ends...)
	for i, seg := range w.segments {
		if n := seg.to - seg.from; n < int64(length)+1 {
			return d, tooShort(i, n)
		}
	}
	shared.Train.windows, d.Shards = w, w.shards()
	return d, nil
}

// ends returns where the slices of n tokens end. A remainder is left out, or spread.
func (p Contiguous) ends(n int64, agents int) []int64 {
	ends := make([]int64, agents)
	size, extra, at := n/int64(agents), n%int64(agents), int64(0)
	for i := range ends {
		at += size
		if p.Spread && int64(i) < extra {
			at++
		}
		ends[i] = at
	}
	return ends
}

// documents are the documents of a training text.
type documents struct {
	labels  []int32
	classes int
	tokens  []int64 // tokens of each document
	from    []int64 // where each begins in the stream
}

func (s *Set) documents() (docs documents, err error) {
	d, err := s.Text.Documents()
	if err != nil {
		return docs, err
	}
	docs = documents{labels: d.Class, classes: len(d.ClassNames)}
	at := int64(0)
	for _, end := range d.Ends {
		docs.from, docs.tokens = append(docs.from, at), append(docs.tokens, end-at)
		at = end
	}
	return docs, nil
}

// countSlices counts the tokens of each class in consecutive slices of the stream. A text whose
// documents are not known has one class.
func (s *Set) countSlices(ends []int64) [][]int {
	docs := documents{labels: []int32{0}, classes: 1, tokens: []int64{int64(len(s.Text.Train))}, from: []int64{0}}
	if len(s.Text.Train) <= countedTokens && s.Text.Tokenizer != nil {
		if known, err := s.documents(); err == nil {
			docs = known
		}
	}
	counts, from := make([][]int, len(ends)), int64(0)
	for i, to := range ends {
		counts[i] = make([]int, docs.classes)
		for k, at := range docs.from {
			if n := min(to, at+docs.tokens[k]) - max(from, at); n > 0 {
				counts[i][docs.labels[k]] += int(n)
			}
		}
		from = to
	}
	return counts
}

func (d documents) count(shards [][]int32) [][]int {
	counts := make([][]int, len(shards))
	for i, shard := range shards {
		counts[i] = make([]int, d.classes)
		for _, k := range shard {
			counts[i][d.labels[k]] += int(d.tokens[k])
		}
	}
	return counts
}

// join returns a stream of the documents of each shard, in ascending order, and where each shard
// ends in it.
func (d documents) join(tokens []uint16, shards [][]int32) (joined []uint16, ends []int64) {
	total := int64(0)
	for _, shard := range shards {
		for _, k := range shard {
			total += d.tokens[k]
		}
	}
	joined = make([]uint16, 0, total)
	for _, shard := range shards {
		sorted := slices.Clone(shard)
		slices.Sort(sorted)
		for _, k := range sorted {
			joined = append(joined, tokens[d.from[k]:d.from[k]+d.tokens[k]]...)
		}
		ends = append(ends, int64(len(joined)))
	}
	return joined, ends
}

// Describe describes the set in a few words for a person; "": its name suffices.
func (s *Set) Describe() string {
	if s.Text == nil && s.Layout == "" {
		return ""
	}
	if s.Text == nil {
		return fmt.Sprintf("%s: %d + %d pictures of %d classes", s.Layout, s.Train.Len(), s.Test.Len(), s.Classes)
	}
	name := "tokens"
	if t := s.Text.Tokenizer; t != nil {
		name = t.Name() + " tokens"
	}
	d := strconv.Itoa(len(s.Text.Train)) + " + " + strconv.Itoa(len(s.Text.Val)) + " " + name + ", vocabulary " +
		strconv.Itoa(s.Classes)
	if s.Floor > 0 {
		d += fmt.Sprintf(", entropy %.4f nats a token", s.Floor)
	}
	return d
}
