package bpe

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// file is the content of tokenizer.json, as far as it says how text becomes tokens.
type file struct {
	Added        []addedToken `json:"added_tokens"`
	Normalizer   *step        `json:"normalizer"`
	PreTokenizer *step        `json:"pre_tokenizer"`
	Model        model        `json:"model"`
}

// addedToken is a token that is no result of merges.
type addedToken struct {
	ID         int    `json:"id"`
	Content    string `json:"content"`
	Special    bool   `json:"special"`
	SingleWord bool   `json:"single_word"`
	LStrip     bool   `json:"lstrip"`
	RStrip     bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
}

// step is a normalizer or a pre-tokenizer: the fields of all types that are known here.
type step struct {
	Type           string  `json:"type"`
	PreTokenizers  []*step `json:"pretokenizers"`
	Normalizers    []*step `json:"normalizers"`
	AddPrefixSpace bool    `json:"add_prefix_space"`
	UseRegex       *bool   `json:"use_regex"`
	Individual     bool    `json:"individual_digits"`
	Behavior       string  `json:"behavior"`
	Invert         bool    `json:"invert"`
	Pattern        struct {
		Regex  *string `json:"Regex"`
		String *string `json:"String"`
	} `json:"pattern"`
}

// model is the vocabulary and the merges.
type model struct {
	Type         string         `json:"type"`
	Dropout      float64        `json:"dropout"`
	Prefix       string         `json:"continuing_subword_prefix"`
	Suffix       string         `json:"end_of_word_suffix"`
	ByteFallback bool           `json:"byte_fallback"`
	IgnoreMerges bool           `json:"ignore_merges"`
	Vocabulary   map[string]int `json:"vocab"`
	Merges       []merge        `json:"merges"`
}

// merge is a pair of tokens that become one.
type merge [2]string

// UnmarshalJSON reads a pair as a list, or as a string with a space between its two.
func (m *merge) UnmarshalJSON(b []byte) error {
	var pair []string
	if json.Unmarshal(b, &pair) != nil {
		var line string
		if err := json.Unmarshal(b, &line); err != nil {
			return err
		}
		pair = strings.Split(line, " ")
	}
	if len(pair) != 2 {
		return fmt.Errorf("the merge %s, want two tokens", b)
	}
	m[0], m[1] = pair[0], pair[1]
	return nil
}

// unsupported is an error about something that a file asks for.
func unsupported(format string, args ...any) error {
	return fmt.Errorf("it has "+format+", which is not supported: byte-level BPE is, as of GPT-2, Llama 3, Qwen "+
		"and SmolLM", args...)
}

// most is the number of tokens that 16 bits tell apart.
const most = 1 << 16

// New reads the content of a tokenizer.json.
func New(content []byte) (*Tokenizer, error) {
	var f file
	if err := json.Unmarshal(content, &f); err != nil {
		return nil, fmt.Errorf("it is not a tokenizer.json: %w", err)
	}
	if err := f.Model.check(); err != nil {
		return nil, err
	}
	t := &Tokenizer{content: string(content), whole: f.Model.IgnoreMerges}
	var err error
	if t.nfc, err = normalized(f.Normalizer); err != nil {
		return nil, err
	}
	if f.PreTokenizer == nil {
		return nil, unsupported("no pre-tokenizer")
	}
	level := false
	if t.splits, level, err = splitsOf(f.PreTokenizer); err != nil {
		return nil, err
	}
	if !level {
		return nil, unsupported("the pre-tokenizer %s without ByteLevel", f.PreTokenizer.Type)
	}
	if err := t.setTokens(f); err != nil {
		return nil, err
	}
	return t, t.setMerges(f.Model)
}

func (m *model) check() error {
	switch {
	case m.Type != "BPE":
		return unsupported("a model of the type %q", m.Type)
	case m.Dropout != 0:
		return unsupported("dropout %g of merges", m.Dropout)
	case m.Prefix != "":
		return unsupported("the continuing_subword_prefix %q", m.Prefix)
	case m.Suffix != "":
		return unsupported("the end_of_word_suffix %q", m.Suffix)
	case m.ByteFallback:
		return unsupported("byte_fallback")
	case len(m.Vocabulary) == 0:
		return errors.New("it has no vocabulary")
	}
	return nil
}

// normalized reports whether text is brought to the form NFC of Unicode.
func normalized(s *step) (nfc bool, err error) {
	switch {
	case s == nil:
		return false, nil
	case s.Type == "NFC":
		return true, nil
	case s.Type != "Sequence":
		return false, unsupported("the normalizer %s", s.Type)
	}
	for _, part := range s.Normalizers {
		one, err := normalized(part)
		if err != nil {
			return false, err
		}
		nfc = nfc || one
	}
	return nfc, nil
}

// setTokens sets the bytes of the tokens, and those that are found in text as they are.
func (t *Tokenizer) setTokens(f file) error {
	size := 0
	for token, id := range f.Model.Vocabulary {
		if id < 0 {
			return fmt.Errorf("its token %q has the number %d", token, id)
		}
		size = max(size, id+1)
	}
	for _, a := range f.Added {
		if a.ID < 0 {
			return fmt.Errorf("its token %q has the number %d", a.Content, a.ID)
		}
		size = max(size, a.ID+1)
	}
	if size > most {
		return fmt.Errorf("it has %d tokens, want at most %d, which numbers of 16 bits tell apart: train a tokenizer "+
			"of fewer tokens, or use one such as GPT-2's", size, most)
	}
	t.tokens, t.ids = make([][]byte, size), map[string]uint16{}
	var found []string
	for token, id := range f.Model.Vocabulary {
		t.tokens[id] = bytesOf(token)
	}
	for _, a := range f.Added {
		t.tokens[a.ID] = []byte(a.Content)
		switch {
		case a.Special || a.Content == "":
			continue
		case a.SingleWord || a.LStrip || a.RStrip:
			return unsupported("the token %q with single_word, lstrip or rstrip", a.Content)
		case a.Normalized && t.nfc:
			return unsupported("the token %q, found after normalization", a.Content)
		}
		found = append(found, a.Content)
		t.ids[a.Content] = uint16(a.ID)
	}
	if len(found) > 0 { // The longest of several at one place is taken.
		slices.SortStableFunc(found, func(a, b string) int { return len(b) - len(a) })
		for i, content := range found {
			found[i] = regexp.QuoteMeta(content)
		}
		t.added = regexp.MustCompile(strings.Join(found, "|"))
	}
	t.setEnd(f.Added)
	return nil
}

// ends are usual names of the token that ends a text. The file does not say which one it is.
var ends = []string{"<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>"}

func (t *Tokenizer) setEnd(added []addedToken) {
	t.end = -1
	for _, name := range ends {
		for _, a := range added {
			if a.Content == name && a.Special && t.end < 0 {
				t.end = a.ID
			}
		}
	}
}

// setMerges sets the tokens of the bytes, and the merges.
func (t *Tokenizer) setMerges(m model) error {
	for b := range 256 {
		id, ok := m.Vocabulary[string(alphabet[b])]
		if !ok {
			return fmt.Errorf("its vocabulary has no token %q for the byte %d: it is not of a byte-level BPE",
				alphabet[b], b)
		}
		t.bytes[b] = uint16(id)
	}
	t.merges = make(map[[2]uint16]result, len(m.Merges))
	for rank, pair := range m.Merges {
		var ids [3]int
		for k, token := range []string{pair[0], pair[1], pair[0] + pair[1]} {
			id, ok := m.Vocabulary[token]
			if !ok {
				return fmt.Errorf("its merge %d is of %q and %q, but the vocabulary has no token %q", rank, pair[0],
					pair[1], token)
			}
			ids[k] = id
		}
		t.merges[[2]uint16{uint16(ids[0]), uint16(ids[1])}] = result{rank, uint16(ids[2])}
	}
	if t.whole {
		t.words = make(map[string]uint16, len(m.Vocabulary))
		for token, id := range m.Vocabulary {
			t.words[string(bytesOf(token))] = uint16(id)
		}
	}
	return nil
}

// alphabet is the character by which the vocabulary writes each byte: printable ones of Latin-1 by
// themselves, the others from U+0100 on.
var alphabet, byteOf = func() (to [256]rune, from map[rune]byte) {
	from = map[rune]byte{}
	next := rune(256)
	for b := range 256 {
		r := rune(b)
		if r < '!' || r > '~' && r < '¡' || r == 0xad {
			r = next
			next++
		}
		to[b], from[r] = r, byte(b)
	}
	return to, from
}()

// bytesOf returns the bytes of a token of the vocabulary; one with other characters is itself.
func bytesOf(token string) []byte {
	var b []byte
	for _, r := range token {
		v, ok := byteOf[r]
		if !ok {
			return []byte(token)
		}
		b = append(b, v)
	}
	return b
}
