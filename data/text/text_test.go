package text_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fspda/data/text"
	"fspda/data/text/gpt2"
	"fspda/internal/testing/realdata"
)

// golden are the counts and hashes of tinyshakespeare, made by Python.
type golden struct {
	Data struct {
		Bytes    int
		Sha256   string
		Vocab    int
		Chars    string
		Char     streams
		BPE      streams
		Speeches struct {
			Speakers    int
			WithSpeaker int              `json:"with_speaker"`
			Most        [][2]interface{} `json:"most"`
		}
	}
}

type streams struct {
	Train, Val  int
	TrainSHA    string   `json:"train_sha256"`
	ValSHA      string   `json:"val_sha256"`
	First16     []uint16 `json:"first16"`
	ValFirst16  []uint16 `json:"val_first16"`
	UnigramLoss float64  `json:"val_unigram_loss"`
	Example     struct {
		Text string
		IDs  []uint16
	}
}

func readGolden(t *testing.T) (g golden) {
	t.Helper()
	b, err := os.ReadFile(realdata.Path(t, "gpt-tiny-golden.json"))
	if err == nil {
		err = json.Unmarshal(b, &g)
	}
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func sha(tokens []uint16) string {
	h := sha256.New()
	if err := binary.Write(h, binary.LittleEndian, tokens); err != nil {
		panic(err)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func check(t *testing.T, what string, c *text.Corpus, want streams) {
	t.Helper()
	if len(c.Train) != want.Train || len(c.Val) != want.Val {
		t.Fatalf("%s: %d and %d tokens, want %d and %d", what, len(c.Train), len(c.Val), want.Train, want.Val)
	}
	if !slices.Equal(c.Train[:16], want.First16) || !slices.Equal(c.Val[:16], want.ValFirst16) {
		t.Errorf("%s: the streams begin with %d and %d", what, c.Train[:16], c.Val[:16])
	}
	if sha(c.Train) != want.TrainSHA || sha(c.Val) != want.ValSHA {
		t.Errorf("%s: hashes %s and %s", what, sha(c.Train), sha(c.Val))
	}
}

// Characters and BPE of tinyshakespeare have the golden counts and hashes, from the text and from
// the prepared files, which are those that nanoGPT's own scripts write.
func TestShakespeare(t *testing.T) {
	path, g := realdata.Path(t, "tinyshakespeare.txt"), readGolden(t).Data
	for name, want := range map[string]streams{"char": g.Char, "gpt2": g.BPE} {
		if name == "gpt2" && testing.Short() {
			continue
		}
		dir := t.TempDir()
		m, err := text.Prepare(path, name, dir)
		if err != nil {
			t.Fatal(err)
		}
		if m.Train.Bytes+m.Val.Bytes != int64(g.Bytes) || m.Train.Tokens != int64(want.Train) {
			t.Errorf("%s: %+v", name, m)
		}
		c, err := text.Open(dir, text.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		check(t, name, c, want)
		whole, err := c.Decode(c.Train)
		if err != nil {
			t.Fatal(err)
		}
		original, _ := os.ReadFile(path)
		if !bytes.Equal(whole, original[:len(whole)]) {
			t.Errorf("%s: the decoded stream is not the text", name)
		}
		d, err := c.Documents()
		if err != nil {
			t.Fatal(err)
		}
		if len(d.Ends) != g.Speeches.WithSpeaker || len(d.ClassNames) != g.Speeches.Speakers {
			t.Errorf("%s: %d speeches of %d speakers, want %d of %d", name, len(d.Ends), len(d.ClassNames),
				g.Speeches.WithSpeaker, g.Speeches.Speakers)
		}
		counts := map[string]float64{}
		for _, k := range d.Class {
			counts[d.ClassNames[k]]++
		}
		for _, most := range g.Speeches.Most {
			if counts[most[0].(string)] != most[1].(float64) {
				t.Errorf("%s: %v speeches of %v, want %v", name, counts[most[0].(string)], most[0], most[1])
			}
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	c, err := text.Open(path, text.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	check(t, "without preparation", c, g.Char)
	if chars := c.Tokenizer.(*text.Chars).Chars(); chars != g.Chars || c.Vocabulary != g.Vocab {
		t.Errorf("characters %q", chars)
	}
}

// The loss of the frequencies of the training stream on the validation stream is the golden one.
func TestUnigramLoss(t *testing.T) {
	c, err := text.Open(realdata.Path(t, "tinyshakespeare.txt"), text.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	count, loss := make([]float64, c.Vocabulary), 0.0
	for _, v := range c.Train {
		count[v]++
	}
	for _, v := range c.Val {
		loss -= math.Log(count[v]/float64(len(c.Train))) / float64(len(c.Val))
	}
	if want := readGolden(t).Data.Char.UnigramLoss; math.Abs(loss-want) > 1e-10 {
		t.Errorf("%v, want %v", loss, want)
	}
}

// GPT-2's tokenizer gives the golden tokens, and long text in parts those of the whole.
func TestGPT2(t *testing.T) {
	tok, err := text.NewTokenizer("gpt2", "")
	if err != nil {
		t.Fatal(err)
	}
	const example = "Hello, world! I'm  2 spaces\n\nté"
	want := []uint16{15496, 11, 995, 0, 314, 1101, 220, 362, 9029, 198, 198, 83, 2634}
	got, err := tok.Encode(nil, []byte(example))
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%d, %v; want %d", got, err, want)
	}
	var back []byte
	for _, id := range got {
		back = append(back, tok.Token(id)...)
	}
	if string(back) != example || tok.Size() != gpt2.Size {
		t.Errorf("decoded %q, %d tokens", back, tok.Size())
	}
	if _, err := tok.Encode(nil, []byte("abc\xffdef")); err == nil || !strings.Contains(err.Error(), "byte 3") {
		t.Errorf("text that is not UTF-8: %v", err)
	}
}

func write(t *testing.T, dir, name, content string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// Text that is not ASCII is divided and encoded by characters.
func TestChars(t *testing.T) {
	path := write(t, t.TempDir(), "in.txt", strings.Repeat("éa€\n", 10)) // 40 characters
	c, err := text.Open(path, text.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if chars := c.Tokenizer.(*text.Chars).Chars(); chars != "\naé€" || len(c.Train) != 36 || len(c.Val) != 4 {
		t.Errorf("%q, %d and %d tokens", chars, len(c.Train), len(c.Val))
	}
	if !slices.Equal(c.Val, []uint16{2, 1, 3, 0}) || c.Bytes(c.Val) != 7 {
		t.Errorf("val %d of %d bytes", c.Val, c.Bytes(c.Val))
	}
	_, err = c.Tokenizer.Encode(nil, []byte("aéb"))
	if unknown, ok := errors.AsType[*text.CharError](err); !ok || unknown.At != 2 || unknown.Char != 'b' {
		t.Errorf("an unknown character: %v", err)
	}
	b, err := text.Open(path, text.OpenOptions{Tokenizer: "byte"})
	if err != nil || b.Vocabulary != 256 || len(b.Train) != 9*7 || len(b.Val) != 7 {
		t.Errorf("bytes: %+v, %v", b, err)
	}
}

// Files of llm.c and nanoGPT are read, with and without a description.
func TestBins(t *testing.T) {
	dir := t.TempDir()
	le := func(v ...uint16) string {
		var b []byte
		for _, x := range v {
			b = binary.LittleEndian.AppendUint16(b, x)
		}
		return string(b)
	}
	head := make([]byte, 1024)
	binary.LittleEndian.PutUint32(head, 20240520)
	binary.LittleEndian.PutUint32(head[4:], 1)
	binary.LittleEndian.PutUint32(head[8:], 3)
	write(t, dir, "tiny_shakespeare_train.bin", string(head)+le(5, 50256, 7))
	write(t, dir, "tiny_shakespeare_val.bin", le(1, 2))
	c, err := text.Open(dir, text.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(c.Train, []uint16{5, 50256, 7}) || !slices.Equal(c.Val, []uint16{1, 2}) ||
		c.Vocabulary != gpt2.Size || c.Bytes(c.Val) != 2 {
		t.Errorf("%+v", c)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	short := t.TempDir()
	write(t, short, "train.bin", string(head[:100]))
	write(t, short, "val.bin", le(1, 2))
	if _, err := text.Open(short, text.OpenOptions{}); err == nil || !strings.Contains(err.Error(), "100 bytes") ||
		!strings.Contains(err.Error(), "header of 1024 bytes") {
		t.Errorf("a file that ends in its header: %v", err)
	}
	bare := t.TempDir() // nanoGPT's characters without their names
	write(t, bare, "train.bin", le(1, 64, 3))
	write(t, bare, "val.bin", le(9, 2))
	if c, err = text.Open(bare, text.OpenOptions{}); err != nil || c.Vocabulary != 65 || c.Tokenizer != nil {
		t.Fatalf("%+v, %v", c, err)
	}
	defer c.Close()
	if _, err := c.Documents(); err == nil || !strings.Contains(err.Error(), "meta.json") || c.Bytes(c.Val) != 0 {
		t.Errorf("documents of tokens without a tokenizer: %v", err)
	}
}

// Several files are documents; gpt2 ends each.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a/one.txt", "aaaa")
	write(t, dir, "a/two.txt", "bbb")
	write(t, dir, "b.txt", "ccccccccccccc")
	out := t.TempDir()
	if _, err := text.Prepare(dir, "char", out); err != nil {
		t.Fatal(err)
	}
	for _, from := range []string{dir, out} {
		c, err := text.Open(from, text.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		d, err := c.Documents()
		if err != nil || !slices.Equal(d.Ends, []int64{4, 7, 18}) || !slices.Equal(d.Class, []int32{0, 0, 1}) ||
			!slices.Equal(d.ClassNames, []string{"a", "b"}) || len(c.Val) != 2 {
			t.Errorf("%s: %+v, %v", from, d, err)
		}
		_ = c.Close()
	}
	c, err := text.Open(dir, text.OpenOptions{Tokenizer: "gpt2"})
	if err != nil {
		t.Fatal(err)
	}
	d, err := c.Documents()
	if err != nil || len(d.Ends) != 3 || c.Train[d.Ends[0]-1] != gpt2.EndOfText || c.Train[d.Ends[1]-1] !=
		gpt2.EndOfText || c.Val[len(c.Val)-1] != gpt2.EndOfText {
		t.Errorf("%+v, %v: %d", d, err, c.Train)
	}
	if got, all := c.Bytes(c.Val), len(c.Tokenizer.Token(c.Val[0])); got != int64(all) || len(c.Val) != 2 {
		t.Errorf("the text of %d has %d bytes, want %d: what separates texts is none", c.Val, got, all)
	}
	split := t.TempDir() // two parts by their names
	write(t, split, "train.txt", "abc")
	write(t, split, "val.txt", "cd")
	if c, err = text.Open(split, text.OpenOptions{}); err != nil || len(c.Train) != 3 || len(c.Val) != 2 ||
		c.Vocabulary != 4 {
		t.Errorf("%+v, %v", c, err)
	}
}

// Speeches: blocks without a speaker belong to the one before, and the whole stream is covered.
func TestSpeeches(t *testing.T) {
	const play = "ANN:\nHello.\n\nBOB:\nHi,\nAnn.\n\nShe smiles.\n\nANN:\nBye.\n\nNOTE:\n\nend"
	path := write(t, t.TempDir(), "in.txt", play+strings.Repeat(".", len(play)/9+1))
	c, err := text.Open(path, text.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	d, err := c.Documents()
	if err != nil || !slices.Equal(d.ClassNames, []string{"ANN", "BOB"}) || !slices.Equal(d.Class, []int32{0, 1, 0}) ||
		d.Ends[0] != 13 || d.Ends[2] != int64(len(c.Train)) {
		t.Errorf("%+v of %d, %v", d, len(c.Train), err)
	}
}

// The synthetic text depends on its seed alone, and its statistics have the entropy that is said.
func TestSynthetic(t *testing.T) {
	a, err := text.Synthetic(1, 200000, 1000)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := text.Synthetic(1, 100, 1000)
	other, _ := text.Synthetic(2, 100, 1000)
	if !slices.Equal(a.Train[:100], b.Train) || !slices.Equal(a.Val, b.Val) || slices.Equal(b.Train, other.Train) ||
		a.Vocabulary != 32 {
		t.Error("the text is not a function of its seed")
	}
	count := map[[2]uint16]*[32]float64{}
	for i := 2; i < len(a.Train); i++ {
		c := [2]uint16(a.Train[i-2 : i])
		if count[c] == nil {
			count[c] = new([32]float64)
		}
		count[c][a.Train[i]]++
	}
	entropy := 0.0 // of the frequencies, which is lower by about 31·1024/2n
	for _, next := range count {
		sum := 0.0
		for _, n := range next {
			sum += n
		}
		for _, n := range next {
			if n > 0 {
				entropy -= n / float64(len(a.Train)) * math.Log(n/sum)
			}
		}
	}
	if math.Abs(entropy-text.Entropy()) > 0.06 || math.Abs(text.Entropy()-1.389) > 0.01 {
		t.Errorf("entropy %v, want %v", entropy, text.Entropy())
	}
	if _, err := text.Synthetic(1, 0, 5); err == nil {
		t.Error("no error for an empty text")
	}
}

// Bad input is refused with its place.
func TestBadInput(t *testing.T) {
	dir := func(files ...string) string {
		d := t.TempDir()
		for i := 0; i < len(files); i += 2 {
			write(t, d, files[i], files[i+1])
		}
		return d
	}
	head := func(magic, version, count uint32) string {
		b := make([]byte, 1026)
		for i, v := range []uint32{magic, version, count} {
			binary.LittleEndian.PutUint32(b[4*i:], v)
		}
		return string(b)
	}
	const meta = `{"tokenizer":"char","vocab_size":3,"chars":"abc"}`
	for want, c := range map[string]struct {
		path, tokenizer string
	}{
		"odd number":          {dir("train.bin", "abc", "val.bin", "ab"), ""},
		"it is empty":         {dir("train.bin", "", "val.bin", "ab"), ""},
		"no val.bin":          {dir("train.bin", "ab"), ""},
		"no train.bin":        {dir("val.bin", "ab"), ""},
		"version 2":           {dir("train.bin", head(20240520, 2, 1), "val.bin", "ab"), ""},
		"says 5 tokens":       {dir("train.bin", head(20240520, 1, 5), "val.bin", "ab"), ""},
		"32 bits":             {dir("train.bin", head(20240801, 1, 1), "val.bin", "ab"), ""},
		"token 1 is 3":        {dir("train.bin", "\x00\x00\x03\x00", "val.bin", "\x00\x00", "meta.json", meta), ""},
		"does not describe":   {dir("train.bin", "ab", "val.bin", "ab", "meta.json", "{"), ""},
		"says tokenizer char": {dir("train.bin", "ab", "val.bin", "ab", "meta.json", meta), "byte"},
		"meta.pkl":            {dir("train.bin", "ab", "val.bin", "ab"), "char"},
		"it says 4 tokens": {dir("train.bin", "\x00\x00", "val.bin", "\x00\x00", "meta.json",
			strings.Replace(meta, "3", "4", 1)), ""},
		"2 tokens, want the 3 of": {dir("train.bin", "\x00\x00\x01\x00", "val.bin", "\x00\x00", "meta.json",
			strings.Replace(meta, "}", `,"train":{"tokens":3},"val":{"tokens":1}}`, 1)), ""},
		"1 tokens, want the 2 of": {dir("train.bin", "\x00\x00\x01\x00", "val.bin", "\x00\x00", "meta.json",
			strings.Replace(meta, "}", `,"train":{"tokens":2},"val":{"tokens":2}}`, 1)), ""},
		"add up": {dir("train.bin", "\x00\x00", "val.bin", "\x00\x00", "meta.json", strings.Replace(meta, "}",
			`,"files":[{"class":"a","tokens":2}]}`, 1)), ""},
		"ascending " +
			"order": {dir("train.bin", "\x00\x00", "val.bin", "\x00\x00", "meta.json", strings.Replace(meta, "abc",
			"cba", 1)), ""},
		"neither train.bin":     {dir("readme", "x"), ""},
		"want text":             {dir("a.txt", ""), ""},
		"but no val.txt":        {dir("train.txt", "ab"), ""},
		"byte 2 is 0xff":        {dir("a.txt", "ab\xffcd"), ""},
		"no tokenizer \"word\"": {dir("a.txt", "ab"), "word"},
	} {
		_, err := text.Open(c.path, text.OpenOptions{Tokenizer: c.tokenizer})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if _, err := text.Open(filepath.Join(t.TempDir(), "no"), text.OpenOptions{}); !errors.Is(err, fs.ErrNotExist) ||
		!strings.Contains(err.Error(), "name one that exists") {
		t.Errorf("a path that does not exist: %v", err)
	}
}

// A text that cannot be prepared is bad input, and files of others stay as they are.
func TestPrepareRefuses(t *testing.T) {
	foreign, other, file := t.TempDir(), filepath.Join(t.TempDir(), "other"), filepath.Join(t.TempDir(), "file")
	write(t, foreign, "val.bin", "ab")
	write(t, filepath.Dir(file), "file", "x")
	chars := t.TempDir()
	write(t, chars, "a.txt", "abcdefghijklm")
	for range 2 { // the second is the same preparation
		if _, err := text.Prepare(chars, "char", other); err != nil {
			t.Fatal(err)
		}
	}
	meta, err := os.ReadFile(filepath.Join(other, "meta.json"))
	if err != nil {
		t.Fatal(err)
	}
	for want, c := range map[string]struct{ content, tokenizer, out string }{
		"such as val.bin":        {"abcdefghijklm", "char", foreign},
		"such as file":           {"abcdefghijklm", "char", filepath.Dir(file)},
		"tokens of another":      {"abcdefghijklm", "byte", other},
		"it cannot be made":      {"abcdefghijklm", "char", file},
		"0 training and 1":       {"a", "byte", filepath.Join(foreign, "short")},
		"a vocabulary of 1":      {strings.Repeat("a", 50), "char", filepath.Join(foreign, "same")},
		"no tokenizer \"word\"":  {"abcdefghijklm", "word", filepath.Join(foreign, "word")},
		"byte 0 is 0xff, which ": {"\xffabcdefghijklm", "char", filepath.Join(foreign, "bad")},
	} {
		in := t.TempDir()
		write(t, in, "a.txt", c.content)
		_, err := text.Prepare(in, c.tokenizer, c.out)
		if _, ok := errors.AsType[*text.FormatError](err); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if now, err := os.ReadFile(filepath.Join(other, "meta.json")); err != nil || !bytes.Equal(now, meta) {
		t.Errorf("meta.json is now %s, %v", now, err)
	}
	if left, err := filepath.Glob(filepath.Join(foreign, "*")); err != nil || len(left) != 1 {
		t.Errorf("%q, %v", left, err)
	}
}

// A writer holds incomplete characters back.
func TestWriter(t *testing.T) {
	var out bytes.Buffer
	w := text.NewWriter(&out, text.Bytes{})
	var seen []string
	for _, b := range []byte("a€é\xffz\xe2") {
		if err := w.Token(uint16(b)); err != nil {
			t.Fatal(err)
		}
		seen = append(seen, out.String())
	}
	want := []string{"a", "a", "a", "a€", "a€", "a€é", "a€é\xff", "a€é\xffz", "a€é\xffz"}
	if !slices.Equal(seen, want) {
		t.Errorf("%q, want %q", seen, want)
	}
	if err := w.Flush(); err != nil || !strings.HasSuffix(out.String(), "z\xe2") {
		t.Errorf("%q, %v", out.String(), err)
	}
	if err := w.Token(256); err == nil {
		t.Error("no error for a token outside of the vocabulary")
	}
}
