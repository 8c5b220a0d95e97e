package text_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fspda/data/text"
)

// tokenizerFile writes a tokenizer.json to a folder and returns its path.
func tokenizerFile(t *testing.T, dir string) string {
	content, err := os.ReadFile(filepath.Join("bpe", "testdata", "llama3.json"))
	if err != nil {
		t.Fatal(err)
	}
	var c struct{ Tokenizer json.RawMessage }
	if err := json.Unmarshal(content, &c); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "tokenizer.json", string(c.Tokenizer))
	return filepath.Join(dir, "tokenizer.json")
}

// A text that a tokenizer.json made into tokens keeps the tokenizer in its description.
func TestTokenizerFile(t *testing.T) {
	file := tokenizerFile(t, t.TempDir())
	dir, out := t.TempDir(), filepath.Join(t.TempDir(), "tokens")
	write(t, dir, "a.txt", "She'll say: we've reasons.\n")
	write(t, dir, "b.txt", "Über naïve façades, 東京で１２３")
	m, err := text.Prepare(dir, file, out)
	if err != nil {
		t.Fatal(err)
	}
	c, err := text.Open(out, text.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	whole, err := c.Decode(append(slices.Clone(c.Train), c.Val...))
	if want := "She'll say: we've reasons.\n<|endoftext|>Über naïve façades, 東京で１２３<|endoftext|>"; err != nil ||
		string(whole) != want {
		t.Errorf("the tokens are %q, want %q, error %v", whole, want, err)
	}
	if m.Train.Bytes+m.Val.Bytes != int64(len(whole)-2*len("<|endoftext|>")) || c.Vocabulary != m.Vocabulary {
		t.Errorf("%d and %d bytes, vocabulary %d and %d", m.Train.Bytes, m.Val.Bytes, c.Vocabulary, m.Vocabulary)
	}
	d, err := c.Documents()
	if err != nil || len(d.Ends) != 2 {
		t.Errorf("documents %+v, error %v, want two", d, err)
	}
	described, err := text.Describe(c.Tokenizer)
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, "description.json", string(described))
	again, err := text.ReadTokenizer(dir, "description.json")
	if err != nil || !text.Same(again, c.Tokenizer) {
		t.Errorf("the tokenizer of its description is another one, error %v", err)
	}
	if _, err := text.Open(out, text.OpenOptions{Tokenizer: "gpt2"}); err == nil ||
		!strings.Contains(err.Error(), "it says tokenizer tokenizer.json, want gpt2") {
		t.Errorf("error %v", err)
	}
}

// A tokenizer is found by its name, its path, or the path of its folder.
func TestFindTokenizer(t *testing.T) {
	dir := t.TempDir()
	file := tokenizerFile(t, dir)
	t.Chdir(filepath.Dir(dir))
	for _, name := range []string{file, dir, filepath.Base(dir)} {
		if tok, err := text.FindTokenizer(name); err != nil || tok.Size() != 330 {
			t.Errorf("%s: %v", name, err)
		}
	}
	write(t, dir, "bert.json", `{"model": {"type": "WordPiece"}}`)
	for name, want := range map[string]string{"gpt9": "no tokenizer \"gpt9\"",
		filepath.Join(dir, "none.json"): "none.json",
		filepath.Join(dir, "bert.json"): "bert.json: it has a model of the type \"WordPiece\", which"} {
		if _, err := text.FindTokenizer(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q in it", name, err, want)
		}
	}
}

// GPT-2 has a token for U+007F, which its library leaves out.
func TestDeleted(t *testing.T) {
	tok, err := text.NewTokenizer("gpt2", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range []string{"\x7f", "a\x7fb", " \x7f! \x01\x02  \x7f", "x\x7f\x7f \x03"} {
		got, err := tok.Encode(nil, []byte(in))
		if err != nil {
			t.Fatal(err)
		}
		var back []byte
		for _, id := range got {
			back = append(back, tok.Token(id)...)
		}
		if string(back) != in {
			t.Errorf("%q becomes %q", in, back)
		}
	}
}
