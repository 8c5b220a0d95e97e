package text

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"fspda/data/text/bpe"
	"fspda/internal/bounded"
	"fspda/internal/wholefile"
)

// metaFile describes the files of tokens beside it.
const metaFile = "meta.json"

// maxMeta bounds the size of a metaFile: 65,536 characters, and the names of many files.
const maxMeta = 64 << 20

// Meta is the content of meta.json, which [Prepare] writes beside train.bin and val.bin.
type Meta struct {
	description
	Train Size   `json:"train"`
	Val   Size   `json:"val"`
	Files []part `json:"files,omitempty"` // the files of the training stream, if there are several
}

type description struct {
	Name       string `json:"tokenizer"`
	Vocabulary int    `json:"vocab_size"`
	Chars      string `json:"chars,omitempty"` // the characters of the tokenizer char
	File       string `json:"file,omitempty"`  // content of a tokenizer.json
}

func (d description) open() (Tokenizer, error) {
	if d.File != "" {
		return bpe.New([]byte(d.File))
	}
	return NewTokenizer(d.Name, d.Chars)
}

func describe(t Tokenizer) description {
	d := description{Name: t.Name(), Vocabulary: t.Size()}
	switch t := t.(type) {
	case *Chars:
		d.Chars = t.Chars()
	case *bpe.Tokenizer:
		d.File = t.Content()
	}
	return d
}

// Size is the length of a stream.
type Size struct {
	Tokens int64 `json:"tokens"`
	Bytes  int64 `json:"bytes"` // length of the text
}

// readMeta reads the description of a folder; nil: there is none.
func readMeta(dir, name string) (*Meta, error) {
	path := filepath.Join(dir, name)
	if notExist(path) {
		return nil, nil
	}
	b, err := bounded.File(path, maxMeta)
	if err != nil {
		return nil, fmt.Errorf("text: %w", err)
	}
	m := &Meta{}
	if err = json.Unmarshal(b, m); err == nil && m.Name == "" {
		err = errors.New("it names no tokenizer")
	}
	if err != nil {
		return nil, &FormatError{Path: path, Got: "it does not describe tokens: " + err.Error(),
			Want: "JSON with tokenizer and vocab_size",
			Hint: "prepare the text again with fspda data prepare text", Err: err}
	}
	return m, nil
}

// source is text before it is tokenized.
type source struct {
	train, val []byte
	files      []sourceFile // source files of both, in order, if there are several
}

// sourceFile is a file as a part of the text.
type sourceFile struct {
	class string
	end   int // position in the whole text
}

// read reads a text: a file, or the .txt files of a folder and its subfolders, in the order of
// their names. With the files train.txt and val.txt these are the two parts; otherwise the first
// 90% of the characters are the training part.
func read(path string) (s source, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return s, &FormatError{Path: path, Got: "it cannot be opened: " + err.Error(),
			Want: "a .txt file or a folder of text", Hint: "name one that exists", Err: err}
	}
	var names []string
	if info.IsDir() {
		if s.train, err = readFile(filepath.Join(path, "train.txt")); err == nil {
			if s.val, err = readFile(filepath.Join(path, "val.txt")); errors.Is(err, fs.ErrNotExist) {
				err = &FormatError{Path: path, Got: "there is train.txt, but no val.txt", Want: "both, or neither",
					Hint: "rename train.txt, and its last tenth validates", Err: err}
			}
			return s, err
		} else if !errors.Is(err, fs.ErrNotExist) {
			return s, err
		}
		if names, err = textFiles(path); err != nil {
			return s, err
		}
	} else {
		names = []string{path}
	}
	var all []byte
	for _, name := range names {
		b, err := readFile(name)
		if err != nil {
			return s, err
		}
		all = append(all, b...)
		s.files = append(s.files, sourceFile{classOf(path, name), len(all)})
	}
	n := splitAt(all)
	s.train, s.val = all[:n:n], all[n:]
	if len(s.files) == 1 {
		s.files = nil
	}
	return s, nil
}

// textFiles lists the .txt files of a folder and its subfolders.
func textFiles(dir string) (names []string, err error) {
	for _, pattern := range []string{"*.txt", "*/*.txt"} {
		found, err := filepath.Glob(filepath.Join(escapeGlob(dir), pattern))
		if err != nil {
			return nil, fmt.Errorf("text: %s: %w", dir, err)
		}
		names = append(names, found...)
	}
	if len(names) == 0 {
		return nil, &FormatError{Path: dir, Got: "it has neither train.bin and val.bin nor a .txt file", Want: "a text",
			Hint: "name a folder with .txt files, or one that fspda data prepare text, nanoGPT or llm.c wrote"}
	}
	slices.Sort(names)
	return names, nil
}

// escapeGlob makes a path a pattern that matches itself.
func escapeGlob(dir string) string {
	return strings.NewReplacer(`[`, `[[]`, `*`, `[*]`, `?`, `[?]`).Replace(dir)
}

// classOf returns the class of a file: its subfolder, or its own name.
func classOf(dir, name string) string {
	if sub := filepath.Dir(name); sub != filepath.Clean(dir) && name != dir {
		return filepath.Base(sub)
	}
	return strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))
}

// checkText refuses the content of a file that is no text.
func checkText(name string, b []byte) error {
	at := bytes.IndexByte(b, 0)
	if at < 0 {
		return nil
	}
	return &FormatError{Path: name, Got: fmt.Sprintf("byte %d is 0, which no text has", at), Want: "a text in UTF-8",
		Hint: "it is another kind of file, or a text in UTF-16, to be written again in UTF-8; the tokenizer byte " +
			"reads any file"}
}

// readFile reads a text file that is not empty.
func readFile(name string) ([]byte, error) {
	f, err := bounded.Open(name)
	if err != nil {
		return nil, fmt.Errorf("text: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("text: %w", err)
	}
	if info.Size() == 0 {
		return nil, &FormatError{Path: name, Got: "it is empty", Want: "text"}
	}
	b := bytes.NewBuffer(make([]byte, 0, info.Size()+bytes.MinRead))
	if _, err := b.ReadFrom(f); err != nil {
		return nil, fmt.Errorf("text: %w", err)
	}
	return b.Bytes(), nil
}

// splitAt returns the length in bytes of the first 90% of the characters, of text that is not UTF-8
// of the bytes.
func splitAt(text []byte) int {
	if !utf8.Valid(text) {
		return len(text) / 10 * 9
	}
	chars := utf8.RuneCount(text)
	n := int(math.Floor(0.9 * float64(chars)))
	if chars == len(text) {
		return n
	}
	at := 0
	for range n {
		_, size := utf8.DecodeRune(text[at:])
		at += size
	}
	return at
}

// tokenizerOf returns the tokenizer of a name for a text.
func (s source) tokenizerOf(name string) (Tokenizer, error) {
	if name == "" || name == "char" {
		return CharsOf(slices.Concat(s.train, s.val))
	}
	return FindTokenizer(name)
}

// FindTokenizer returns the tokenizer of a name that does not depend on the text, or of a file
// tokenizer.json, of which the path or that of its folder is given.
func FindTokenizer(name string) (Tokenizer, error) {
	info, err := os.Stat(name)
	isPath := err == nil || strings.HasSuffix(name, ".json") || filepath.Base(name) != name
	if slices.Contains(Names(), name) || !isPath {
		return NewTokenizer(name, "")
	}
	if err == nil && info.IsDir() {
		name = filepath.Join(name, "tokenizer.json")
	}
	content, err := bounded.File(name, maxMeta)
	if err != nil {
		return nil, fmt.Errorf("text: %w", err)
	}
	t, err := bpe.New(content)
	if err != nil {
		return nil, &FormatError{Path: name, Got: err.Error(), Want: "a tokenizer.json of Hugging Face", Err: err}
	}
	return t, nil
}

// tokenize makes both streams. The files are tokenized one by one; a tokenizer that has a token for
// the end of a text sets it behind each of several.
func (s source) tokenize(t Tokenizer) (c *Corpus, err error) {
	var parts []part
	train, val := make([]uint16, 0, len(s.train)/tokenBytes(t)), make([]uint16, 0, len(s.val)/tokenBytes(t))
	end, ends := separator(t)
	from := 0
	for _, f := range s.files {
		before := len(train)
		if train, err = t.Encode(train, between(s.train, from, f.end)); err != nil {
			return nil, err
		}
		if val, err = t.Encode(val, between(s.val, from-len(s.train), f.end-len(s.train))); err != nil {
			return nil, err
		}
		switch {
		case !ends:
		case f.end <= len(s.train):
			train = append(train, end)
		default:
			val = append(val, end)
		}
		if len(train) > before {
			parts = append(parts, part{f.class, int64(len(train) - before)})
		}
		from = f.end
	}
	if s.files == nil {
		if train, err = t.Encode(train, s.train); err != nil {
			return nil, fmt.Errorf("%w (in the training part)", err)
		}
		if val, err = t.Encode(val, s.val); err != nil {
			return nil, fmt.Errorf("%w (in the validation part)", err)
		}
	}
	return newCorpus(t, train, val, parts), nil
}

// tokenBytes is about how many bytes a token has.
func tokenBytes(t Tokenizer) int {
	if t.Size() > 1<<14 {
		return 3
	}
	return 1
}

// between returns b[from:to], with both ends moved into b.
func between(b []byte, from, to int) []byte {
	from, to = min(max(from, 0), len(b)), min(max(to, 0), len(b))
	return b[from:to]
}

func openText(path string, o OpenOptions) (*Corpus, error) {
	s, err := read(path)
	if err != nil {
		return nil, err
	}
	if o.Tokenizer != "byte" {
		if err := cmp.Or(checkText(path, s.train), checkText(path, s.val)); err != nil {
			return nil, err
		}
	}
	var c *Corpus
	t, err := s.tokenizerOf(o.Tokenizer)
	if err == nil {
		c, err = s.tokenize(t)
	}
	if err != nil {
		return nil, &FormatError{Path: path, Got: "it cannot be tokenized: " + err.Error(),
			Want: "a text that suits the tokenizer", Err: err}
	}
	return c, nil
}

// write writes the files of tokens, and meta.json last.
func (c *Corpus) write(dir string) (*Meta, error) {
	m := &Meta{description: describe(c.Tokenizer), Files: c.parts,
		Train: Size{int64(len(c.Train)), c.Bytes(c.Train)}, Val: Size{int64(len(c.Val)), c.Bytes(c.Val)}}
	if len(c.Train) == 0 || len(c.Val) == 0 || c.Vocabulary < 2 {
		return nil, m.tooShort(dir)
	}
	meta, err := m.encode()
	if err != nil {
		return nil, err
	}
	if err := checkFolder(dir, meta); err != nil {
		return nil, err
	}
	if err := makeFolder(dir); err != nil {
		return nil, err
	}
	err = errors.Join(WriteBin(filepath.Join(dir, "train.bin"), c.Train),
		WriteBin(filepath.Join(dir, "val.bin"), c.Val))
	if err != nil {
		return nil, fmt.Errorf("text: writing to %s: %w", dir, err)
	}
	return m, m.publish(dir)
}

// tooShort is the error of streams without tokens.
func (m *Meta) tooShort(dir string) error {
	return &FormatError{Path: dir, Got: fmt.Sprintf("its text would be %d training and %d validation tokens, "+
		"of a vocabulary of %d", m.Train.Tokens, m.Val.Tokens, m.Vocabulary),
		Want: "some of each, and a vocabulary of 2", Hint: "use a longer text"}
}

func (m *Meta) encode() ([]byte, error) {
	meta, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("text: %w", err)
	}
	return append(meta, '\n'), nil
}

// publish writes meta.json, which makes a folder of tokens complete.
func (m *Meta) publish(dir string) error {
	meta, err := m.encode()
	if err == nil {
		err = wholefile.Publish(filepath.Join(dir, metaFile), meta)
	}
	if err != nil {
		return fmt.Errorf("text: writing to %s: %w", dir, err)
	}
	return nil
}

func makeFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return &FormatError{Path: dir, Got: "it cannot be made: " + err.Error(), Want: "a folder",
			Hint: "choose another", Err: err}
	}
	return nil
}

// checkFolder refuses a folder with anything but texts, hidden files and the same preparation,
// whose meta.json is meta.
func checkFolder(dir string, meta []byte) error {
	old, err := bounded.File(filepath.Join(dir, metaFile), maxMeta)
	same := err == nil && bytes.Equal(old, meta)
	entries, _ := os.ReadDir(dir) // a folder that cannot be read cannot be written either
	for _, e := range entries {
		own := slices.Contains([]string{"train.bin", "val.bin", metaFile}, e.Name())
		if same && own || strings.HasPrefix(e.Name(), ".") || strings.HasSuffix(e.Name(), ".txt") {
			continue
		}
		got := "a folder with other things in it, such as " + e.Name()
		if err == nil && own {
			got = "a folder with the tokens of another text or tokenizer"
		}
		return &FormatError{Path: dir, Got: got, Want: "an empty one, or that of the same preparation",
			Hint: "choose another folder"}
	}
	return nil
}

// Prepare tokenizes a text, a file or a folder of .txt files, and writes train.bin and val.bin, as
// nanoGPT reads them, and meta.json to the folder dir. It refuses a folder that holds anything but
// .txt files and the same preparation.
func Prepare(path, tokenizer, dir string) (*Meta, error) {
	c, err := openText(path, OpenOptions{Tokenizer: tokenizer})
	if err != nil {
		return nil, err
	}
	return c.write(dir)
}

// Describe returns a description of a tokenizer, from which [ReadTokenizer] makes it again.
func Describe(t Tokenizer) ([]byte, error) {
	b, err := json.MarshalIndent(describe(t), "", "  ")
	if err != nil {
		return nil, fmt.Errorf("text: %w", err)
	}
	return append(b, '\n'), nil
}

// ReadTokenizer makes the tokenizer that the file of a folder describes: meta.json, or the output
// of [Describe]. It returns an error that wraps [fs.ErrNotExist] if there is no such file.
func ReadTokenizer(dir, name string) (Tokenizer, error) {
	m, err := readMeta(dir, name)
	if err != nil {
		return nil, err
	}
	if m == nil {
		return nil, fmt.Errorf("text: %s: %w", filepath.Join(dir, name), fs.ErrNotExist)
	}
	t, err := m.open()
	if err == nil && t.Size() != m.Vocabulary {
		err = &FormatError{Path: filepath.Join(dir, name), Got: fmt.Sprintf("it says %d tokens", m.Vocabulary),
			Want: fmt.Sprintf("the %d of its tokenizer %s", t.Size(), t.Name())}
	}
	return t, err
}
