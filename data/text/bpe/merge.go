package bpe

import (
	"container/heap"
	"errors"
	"regexp"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Tokenizer makes tokens of text by merging pairs of bytes. It is safe for concurrent use.
type Tokenizer struct {
	content string
	tokens  [][]byte // the bytes of each token
	bytes   [256]uint16
	merges  map[[2]uint16]result
	whole   bool              // a piece that is a token is not merged
	words   map[string]uint16 // tokens by their bytes, if whole
	nfc     bool              // text is brought to the form NFC of Unicode first
	splits  []split
	added   *regexp.Regexp    // finds tokens that are no results of merges; nil: there are none
	ids     map[string]uint16 // the tokens that added finds
	end     int               // -1: none
}

// result is the token of a pair, and its priority: the lowest rank is merged first.
type result struct {
	rank  int
	token uint16
}

// Content returns the tokenizer.json of which the tokenizer was made.
func (t *Tokenizer) Content() string { return t.content }

// Name returns "tokenizer.json".
func (*Tokenizer) Name() string { return "tokenizer.json" }

func (t *Tokenizer) Size() int { return len(t.tokens) }

// Token returns the bytes of a token, which may be a part of a character. The caller does not
// change them.
func (t *Tokenizer) Token(id uint16) []byte { return t.tokens[id] }

// EndOfText returns the token that separates texts; false: there is none of a usual name.
func (t *Tokenizer) EndOfText() (id uint16, ok bool) { return uint16(max(0, t.end)), t.end >= 0 }

// mostCached bounds the pieces of text whose tokens a call remembers.
const mostCached = 1 << 16

// Encode appends the tokens of a text in UTF-8.
func (t *Tokenizer) Encode(dst []uint16, text []byte) ([]uint16, error) {
	if !utf8.Valid(text) {
		return nil, errors.New("bpe: the text is not UTF-8: convert it, or use the tokenizer byte")
	}
	seen, rest, at := map[string][]uint16{}, string(text), 0
	var places [][]int
	if t.added != nil {
		places = t.added.FindAllStringIndex(rest, -1)
	}
	for _, p := range append(places, []int{len(rest), len(rest)}) {
		var err error
		if dst, err = t.encode(dst, rest[at:p[0]], seen); err != nil {
			return nil, err
		}
		if p[1] > p[0] {
			dst = append(dst, t.ids[rest[p[0]:p[1]]])
		}
		at = p[1]
	}
	return dst, nil
}

// encode appends the tokens of a text without added tokens.
func (t *Tokenizer) encode(dst []uint16, text string, seen map[string][]uint16) (_ []uint16, err error) {
	if t.nfc {
		text = norm.NFC.String(text)
	}
	pieces := []string{text}
	for _, s := range t.splits {
		var finer []string
		for _, piece := range pieces {
			if finer, err = s.pieces(finer, piece); err != nil {
				return nil, err
			}
		}
		pieces = finer
	}
	for _, piece := range pieces {
		tokens, ok := seen[piece]
		if !ok {
			tokens = t.merge(piece)
			if len(seen) < mostCached {
				seen[piece] = tokens
			}
		}
		dst = append(dst, tokens...)
	}
	return dst, nil
}

// part is a token of a piece, in a list of those that are left.
type part struct {
	token      uint16
	gone       bool
	prev, next int // -1: none
}

// pair is a part that may be merged with the next one.
type pair struct {
	result
	at int
}

// pairs is a heap: the first is the pair of the lowest rank, of equal ones the leftmost.
type pairs []pair

func (p pairs) Len() int { return len(p) }
func (p pairs) Less(a, b int) bool {
	return p[a].rank < p[b].rank || p[a].rank == p[b].rank && p[a].at < p[b].at
}
func (p pairs) Swap(a, b int) { p[a], p[b] = p[b], p[a] }

func (p *pairs) Push(v any) { *p = append(*p, v.(pair)) }

func (p *pairs) Pop() any {
	last := (*p)[len(*p)-1]
	*p = (*p)[:len(*p)-1]
	return last
}

// merge returns the tokens of a piece.
func (t *Tokenizer) merge(piece string) []uint16 {
	if id, ok := t.words[piece]; ok {
		return []uint16{id}
	}
	parts := make([]part, len(piece))
	for i := range parts {
		parts[i] = part{token: t.bytes[piece[i]], prev: i - 1, next: i + 1}
	}
	if len(parts) == 0 {
		return nil
	}
	parts[len(parts)-1].next = -1
	of := func(i int) (r result, ok bool) {
		if i < 0 || parts[i].next < 0 {
			return r, false
		}
		r, ok = t.merges[[2]uint16{parts[i].token, parts[parts[i].next].token}]
		return r, ok
	}
	var queue pairs
	for i := range parts {
		if r, ok := of(i); ok {
			queue = append(queue, pair{r, i})
		}
	}
	heap.Init(&queue)
	for len(queue) > 0 {
		p := heap.Pop(&queue).(pair)
		if now, ok := of(p.at); parts[p.at].gone || !ok || now != p.result {
			continue // one of its parts has been merged since
		}
		left := &parts[p.at]
		right := &parts[left.next]
		left.token, left.next, right.gone = p.token, right.next, true
		if left.next >= 0 {
			parts[left.next].prev = p.at
		}
		for _, i := range []int{left.prev, p.at} {
			if r, ok := of(i); ok {
				heap.Push(&queue, pair{r, i})
			}
		}
	}
	var tokens []uint16
	for i := 0; i >= 0; i = parts[i].next {
		tokens = append(tokens, parts[i].token)
	}
	return tokens
}
