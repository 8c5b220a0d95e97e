package text

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
)

// Corpus is a training and a validation stream of tokens.
type Corpus struct {
	Tokenizer  Tokenizer // nil: not known
	Vocabulary int       // tokens are below it
	Train, Val []uint16  // read-only, perhaps mapped files

	parts   []part // parts of Train, one for each file; nil: not known
	files   []*BinFile
	lengths func() []uint8 // bytes of each token
}

// part is a file as a part of the training stream.
type part struct {
	Class  string `json:"class"`
	Tokens int64  `json:"tokens"`
}

// OpenOptions configures [Open].
type OpenOptions struct {
	// Tokenizer is the name of one; "" means the one of the folder's meta.json, or char for a text
	Tokenizer string
}

// Open opens a text: a folder with the files train.bin and val.bin of nanoGPT, llm.c or [Prepare],
// a folder of .txt files, or one such file. The .bin files win. Without meta.json, or nanoGPT's
// meta.pkl, tokens below 256 have no known tokenizer unless the options name byte, and others are
// GPT-2's.
func Open(path string, o OpenOptions) (*Corpus, error) {
	train, val, err := binFiles(path)
	if err != nil {
		return nil, err
	}
	if train == "" {
		return openText(path, o)
	}
	meta, err := readMeta(path, metaFile)
	if err == nil && meta == nil && (o.Tokenizer == "" || o.Tokenizer == "char") {
		meta, err = readPickledMeta(path)
	}
	if err != nil {
		return nil, err
	}
	return openBins(path, train, val, meta, o)
}

// binFiles returns the paths of the two files of tokens in a folder; "": there are none.
func binFiles(dir string) (train, val string, err error) {
	names := [2]string{"train", "val"}
	var found [2]string
	for k, name := range names {
		path := filepath.Join(dir, name+".bin")
		if notExist(path) {
			others, err := filepath.Glob(filepath.Join(dir, "*_"+name+".bin")) // llm.c: tiny_shakespeare_train.bin
			if err != nil || len(others) != 1 {
				continue
			}
			path = others[0]
		}
		found[k] = path
	}
	for k, other := range []int{1, 0} {
		if found[k] == "" && found[other] != "" {
			return "", "", &FormatError{Path: dir, Got: "there is " + filepath.Base(found[other]) + ", but no " +
				names[k] + ".bin", Want: "both train.bin and val.bin"}
		}
	}
	return found[0], found[1], nil
}

// openBins opens files of tokens.
func openBins(dir, train, val string, meta *Meta, o OpenOptions) (c *Corpus, err error) {
	c = &Corpus{}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
			c = nil
		}
	}()
	for _, path := range []string{train, val} {
		f, err := OpenBin(path)
		if err != nil {
			return c, err
		}
		c.files = append(c.files, f)
	}
	c.Train, c.Val = c.files[0].Tokens, c.files[1].Tokens
	largest := max(largestToken(c.Train), largestToken(c.Val))
	if err := c.identify(dir, meta, largest, o); err != nil {
		return c, err
	}
	if int(largest) >= c.Vocabulary {
		for _, f := range []struct {
			path   string
			tokens []uint16
		}{{train, c.Train}, {val, c.Val}} {
			if err := c.checkTokens(f.path, f.tokens); err != nil {
				return c, err
			}
		}
	}
	return c, errors.Join(c.checkLengths(dir, meta, train, val), c.checkParts(dir))
}

// checkLengths compares the lengths of the files with those that meta.json says, if it does.
func (c *Corpus) checkLengths(dir string, meta *Meta, train, val string) error {
	if meta == nil {
		return nil
	}
	for _, f := range []struct {
		path   string
		tokens []uint16
		want   int64
	}{{train, c.Train, meta.Train.Tokens}, {val, c.Val, meta.Val.Tokens}} {
		if got := int64(len(f.tokens)); f.want != 0 && got != f.want {
			return &FormatError{Path: f.path, Got: fmt.Sprintf("%d tokens", got), Want: fmt.Sprintf("the %d of %s",
				f.want, filepath.Join(dir, metaFile)), Hint: "it is cut, or of another text: prepare the text again"}
		}
	}
	return nil
}

// checkParts checks the list of files in meta.json.
func (c *Corpus) checkParts(dir string) error {
	if c.parts == nil {
		return nil
	}
	var sum int64
	for _, p := range c.parts {
		if p.Tokens < 0 || p.Tokens > int64(len(c.Train)) {
			sum = -1
			break
		}
		sum += p.Tokens
	}
	if sum != int64(len(c.Train)) {
		return &FormatError{Path: filepath.Join(dir, metaFile), Got: fmt.Sprintf("its files do not add up to the %d "+
			"tokens of train.bin", len(c.Train)), Want: "tokens of each file", Hint: "prepare the text again"}
	}
	return nil
}

// scanned is the length of the longest stream that is searched for wrong tokens before training.
// Wrong tokens of longer ones are found when a batch has them.
const scanned = 1 << 28

func largestToken(tokens []uint16) (largest uint16) {
	for _, t := range tokens[:min(len(tokens), scanned)] {
		largest = max(largest, t)
	}
	return largest
}

// checkTokens names the first token outside of the vocabulary.
func (c *Corpus) checkTokens(path string, tokens []uint16) error {
	for i, t := range tokens[:min(len(tokens), scanned)] {
		if int(t) >= c.Vocabulary {
			return &FormatError{Path: path, Got: fmt.Sprintf("token %d is %d", i, t), Want: fmt.Sprintf("0 to %d",
				c.Vocabulary-1), Hint: "was it made with another tokenizer?"}
		}
	}
	return nil
}

// identify chooses tokenizer and vocabulary of files of tokens.
func (c *Corpus) identify(dir string, meta *Meta, largest uint16, o OpenOptions) (err error) {
	of := description{Name: o.Tokenizer}
	if meta != nil {
		if of.Name != "" && of.Name != meta.Name {
			return &FormatError{Path: filepath.Join(dir, metaFile), Got: "it says tokenizer " + meta.Name,
				Want: of.Name, Hint: "leave the tokenizer out, or prepare the text with the other one"}
		}
		of, c.parts = meta.description, meta.Files
	}
	switch {
	case meta == nil && of.Name == "char":
		return &FormatError{Path: dir, Got: "no " + metaFile + " says which characters its tokens are", Want: "one",
			Hint: "prepare the text with fspda data prepare text, put nanoGPT's meta.pkl beside them, or leave the " +
				"tokenizer out"}
	case of.Name == "" && largest < 256:
		c.Vocabulary = max(2, int(largest)+1)
		return nil
	case of.Name == "":
		of.Name = "gpt2"
		for _, r := range registered {
			if r.name == of.Name { // the vocabulary itself is not read: only decoding needs it
				c.Vocabulary = r.size
			}
		}
	}
	if c.Tokenizer, err = of.open(); err != nil {
		return &FormatError{Path: dir, Got: "its tokenizer " + of.Name + " cannot be made: " + err.Error(),
			Want: "one of this program", Err: err}
	}
	if c.Vocabulary = c.Tokenizer.Size(); meta != nil && meta.Vocabulary != c.Vocabulary {
		return &FormatError{Path: filepath.Join(dir, metaFile), Got: fmt.Sprintf("it says %d tokens", meta.Vocabulary),
			Want: fmt.Sprintf("the %d of its tokenizer %s", c.Vocabulary, of.Name)}
	}
	c.lengths = sync.OnceValue(c.tokenLengths)
	return nil
}

// tokenLengths returns the bytes of each token; longer ones than 255 do not occur.
func (c *Corpus) tokenLengths() []uint8 {
	all := make([]uint8, c.Vocabulary)
	for i := range all {
		all[i] = uint8(min(255, len(c.Tokenizer.Token(uint16(i)))))
	}
	return all
}

// separates is a tokenizer that may have a token between texts, which is no text itself.
type separates interface{ EndOfText() (id uint16, ok bool) }

// separator returns the token between texts; false: there is none.
func separator(t Tokenizer) (id uint16, ok bool) {
	if s, is := t.(separates); is {
		return s.EndOfText()
	}
	return 0, false
}

// Bytes returns the length of a stream as text, in bytes, without separators of texts; 0: the
// tokenizer is not known.
func (c *Corpus) Bytes(tokens []uint16) int64 {
	if c.Tokenizer == nil {
		return 0
	}
	lengths := c.lengths()
	if end, ok := separator(c.Tokenizer); ok {
		lengths = slices.Clone(lengths)
		lengths[end] = 0
	}
	var sum int64
	for _, t := range tokens {
		sum += int64(lengths[t])
	}
	return sum
}

// Decode returns a stream as text. It returns an error if the tokenizer is not known.
func (c *Corpus) Decode(tokens []uint16) ([]byte, error) {
	if c.Tokenizer == nil {
		return nil, errNoTokenizer
	}
	var text []byte
	for _, t := range tokens {
		text = append(text, c.Tokenizer.Token(t)...)
	}
	return text, nil
}

var errNoTokenizer = errors.New("text: the tokenizer of the tokens is not known, because no " + metaFile +
	" lies beside them: prepare the text with fspda data prepare text")

// Mapped reports whether the streams are files that are mapped into memory.
func (c *Corpus) Mapped() bool { return len(c.files) > 0 }

// Close unmaps the files. The streams are invalid afterwards.
func (c *Corpus) Close() error {
	var errs []error
	for _, f := range c.files {
		errs = append(errs, f.Close())
	}
	c.files, c.Train, c.Val = nil, nil, nil
	return errors.Join(errs...)
}

// newCorpus makes a corpus of streams in memory.
func newCorpus(t Tokenizer, train, val []uint16, parts []part) *Corpus {
	c := &Corpus{Tokenizer: t, Vocabulary: t.Size(), Train: train, Val: val, parts: parts}
	c.lengths = sync.OnceValue(c.tokenLengths)
	return c
}
