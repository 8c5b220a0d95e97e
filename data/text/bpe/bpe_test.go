package bpe_test

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fspda/data/text"
	"fspda/data/text/bpe"
	"fspda/data/text/gpt2"
	"fspda/internal/testing/realdata"
)

// compare reads cases that testdata/make.py wrote, and compares the tokens of their texts.
func compare(t *testing.T, folder string) {
	names, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil || len(names) < 8 {
		t.Fatalf("%d cases in %s, error %v", len(names), folder, err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".json"), func(t *testing.T) {
			content, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			var c struct {
				Tokenizer json.RawMessage
				Texts     [][2]json.RawMessage
			}
			if err := json.Unmarshal(content, &c); err != nil {
				t.Fatal(err)
			}
			tok, err := bpe.New(c.Tokenizer)
			if err != nil {
				t.Fatal(err)
			}
			if id, ok := tok.EndOfText(); !ok || string(tok.Token(id)) != "<|endoftext|>" {
				t.Errorf("the text ends with %d, %t", id, ok)
			}
			wrong := 0
			for _, pair := range c.Texts {
				var in string
				var want []uint16
				if err := json.Unmarshal(pair[0], &in); err != nil {
					t.Fatal(err)
				}
				if err := json.Unmarshal(pair[1], &want); err != nil {
					t.Fatal(err)
				}
				got, err := tok.Encode(nil, []byte(in))
				if err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(got, want) && wrong < 10 {
					wrong++
					k := 0
					for k < min(len(got), len(want)) && got[k] == want[k] {
						k++
					}
					t.Errorf("%.200q: %d tokens, want %d; from token %d on %v, want %v", in, len(got), len(want), k,
						got[k:min(k+8, len(got))], want[k:min(k+8, len(want))])
				}
			}
			t.Logf("%d texts", len(c.Texts))
		})
	}
}

// The tokens are those of the library tokenizers.
func TestTokens(t *testing.T) { compare(t, "testdata") }

// The same with larger vocabularies and more texts, where the library is installed.
func TestTokenizers(t *testing.T) {
	python := os.Getenv("FSPDA_PEERS")
	if python == "" {
		t.Skip("FSPDA_PEERS names no Python with the library tokenizers")
	}
	corpus := realdata.Path(t, "tinyshakespeare.txt")
	dir := t.TempDir()
	if out, err := exec.Command(python, "testdata/make.py", dir, corpus, "3000", "20000").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	compare(t, dir)
}

// written returns bytes as tokenizer.json does.
func written(b []byte) string {
	var s strings.Builder
	next := rune(256)
	var of [256]rune
	for k := range 256 {
		of[k] = rune(k)
		if k < 33 || k > 126 && k < 161 || k == 173 {
			of[k], next = next, next+1
		}
	}
	for _, c := range b {
		s.WriteRune(of[c])
	}
	return s.String()
}

// gpt2File makes the tokenizer.json of GPT-2 from its vocabulary: a token's merge is of the two
// parts in which merges of lower ranks leave it.
func gpt2File(t *testing.T) []byte {
	known, err := text.NewTokenizer("gpt2", "")
	if err != nil {
		t.Fatal(err)
	}
	rank, vocabulary, merges := map[string]int{}, map[string]int{}, []string{}
	for id := range gpt2.EndOfText {
		token := known.Token(uint16(id))
		rank[string(token)], vocabulary[written(token)] = id, id
	}
	for id := range gpt2.EndOfText {
		token := string(known.Token(uint16(id)))
		var parts []string
		for i := range len(token) {
			parts = append(parts, token[i:i+1])
		}
		for len(parts) > 2 {
			best, at := id, -1
			for i := range len(parts) - 1 {
				if r, ok := rank[parts[i]+parts[i+1]]; ok && r < best {
					best, at = r, i
				}
			}
			if at < 0 {
				t.Fatalf("token %q falls into %q", token, parts)
			}
			parts = slices.Replace(parts, at, at+2, parts[at]+parts[at+1])
		}
		if len(parts) == 2 {
			merges = append(merges, written([]byte(parts[0]))+" "+written([]byte(parts[1])))
		}
	}
	content, err := json.Marshal(map[string]any{
		"added_tokens":  []any{map[string]any{"id": gpt2.EndOfText, "content": "<|endoftext|>", "special": true}},
		"normalizer":    nil,
		"pre_tokenizer": map[string]any{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true},
		"model":         map[string]any{"type": "BPE", "vocab": vocabulary, "merges": merges}})
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// GPT-2's vocabulary as a file gives the tokens of the tokenizer gpt2, which another library makes.
func TestGPT2(t *testing.T) {
	tok, err := bpe.New(gpt2File(t))
	if err != nil {
		t.Fatal(err)
	}
	known, err := text.NewTokenizer("gpt2", "")
	if err != nil {
		t.Fatal(err)
	}
	if tok.Size() != known.Size() {
		t.Fatalf("%d tokens, want %d", tok.Size(), known.Size())
	}
	for id := range known.Size() {
		if string(tok.Token(uint16(id))) != string(known.Token(uint16(id))) {
			t.Fatalf("token %d is %q, want %q", id, tok.Token(uint16(id)), known.Token(uint16(id)))
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	texts := []string{"", strings.Repeat("ab", 3000), strings.Repeat(" ", 999) + "x",
		"I'll say it's <|endoftext|>\n\n ok"}
	for range 300 {
		s := make([]rune, 1+r.IntN(200))
		top := []int{128, 0x250, 0x3000, 0x30000}[r.IntN(4)]
		for i := range s {
			if s[i] = rune(r.IntN(top)); r.IntN(3) == 0 || s[i] >= 0xd800 && s[i] < 0xe000 {
				s[i] = []rune(" 'estn\n\t9")[r.IntN(9)]
			}
		}
		texts = append(texts, string(s))
	}
	for _, in := range texts {
		got, err := tok.Encode(nil, []byte(in))
		if err != nil {
			t.Fatal(err)
		}
		want, err := known.Encode(nil, []byte(in))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%q: tokens %v, want %v", in, got, want)
		}
		var back []byte
		for _, id := range got {
			back = append(back, tok.Token(id)...)
		}
		if string(back) != in {
			t.Fatalf("%q becomes %q", in, back)
		}
	}
}

// What a file asks for and is not done is refused by its name.
func TestRefused(t *testing.T) {
	vocabulary := map[string]int{}
	for b := range 256 {
		vocabulary[written([]byte{byte(b)})] = b
	}
	vocabulary["ab"] = 256
	base := func() map[string]any {
		return map[string]any{"pre_tokenizer": map[string]any{"type": "ByteLevel", "add_prefix_space": false},
			"model": map[string]any{"type": "BPE", "vocab": vocabulary, "merges": []any{[]string{"a", "b"}}}}
	}
	set := func(path string, v any) func(m map[string]any) {
		return func(m map[string]any) {
			first, second, nested := strings.Cut(path, ".")
			if nested {
				m[first].(map[string]any)[second] = v
			} else {
				m[first] = v
			}
		}
	}
	type m = map[string]any
	for want, change := range map[string]func(m map[string]any){
		"":                                           func(map[string]any) {},
		`a model of the type "Unigram"`:              set("model.type", "Unigram"),
		"dropout 0.1":                                set("model.dropout", 0.1),
		"byte_fallback":                              set("model.byte_fallback", true),
		`end_of_word_suffix "</w>"`:                  set("model.end_of_word_suffix", "</w>"),
		"continuing_subword_prefix":                  set("model.continuing_subword_prefix", "##"),
		"no vocabulary":                              set("model.vocab", m{}),
		`no token 'Ā' for the byte 0`:                set("model.vocab", m{"a": 1}),
		`no token "ba"`:                              set("model.merges", []string{"b a"}),
		"the merge \"a b c\"":                        set("model.merges", []string{"a b c"}),
		"the normalizer Lowercase":                   set("normalizer", m{"type": "Lowercase"}),
		"no pre-tokenizer":                           set("pre_tokenizer", nil),
		"the pre-tokenizer Metaspace":                set("pre_tokenizer", m{"type": "Metaspace"}),
		"the pre-tokenizer Digits without ByteLevel": set("pre_tokenizer", m{"type": "Digits"}),
		"add_prefix_space":                           set("pre_tokenizer.add_prefix_space", true),
		"behavior MergedWithNext": set("pre_tokenizer", m{"type": "Split", "behavior": "MergedWithNext",
			"pattern": m{"String": " "}}),
		"the pattern \"\\\\p{L}++\"": set("pre_tokenizer", m{"type": "Split", "behavior": "Isolated",
			"pattern": m{"Regex": `\p{L}++`}}),
		"single_word, lstrip or rstrip":    set("added_tokens", []any{m{"id": 300, "content": "<x>", "lstrip": true}}),
		"65537 tokens, want at most 65536": set("added_tokens", []any{m{"id": 65536, "content": "<x>"}}),
		`token "<x>" has the number -1`:    set("added_tokens", []any{m{"id": -1, "content": "<x>"}}),
	} {
		of := base()
		change(of)
		content, err := json.Marshal(of)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = bpe.New(content); want == "" && err != nil || want != "" && (err == nil ||
			!strings.Contains(err.Error(), want)) {
			t.Errorf("error %v, want %q in it", err, want)
		}
	}
	if _, err := bpe.New([]byte("[1, 2")); err == nil || !strings.Contains(err.Error(), "not a tokenizer.json") {
		t.Errorf("error %v", err)
	}
	tok, err := bpe.New(func() []byte { b, _ := json.Marshal(base()); return b }())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tok.Encode(nil, []byte{0xff}); err == nil || !strings.Contains(err.Error(), "not UTF-8") {
		t.Errorf("error %v", err)
	}
	if _, ok := tok.EndOfText(); ok {
		t.Error("a text ends with a token that is not there")
	}
}
