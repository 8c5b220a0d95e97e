package images

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// zipOf makes a zip, whose members are stored or deflated in turn.
func zipOf(t testing.TB, files ...file) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i, f := range files {
		h := &zip.FileHeader{Name: f.name, Method: []uint16{zip.Store, zip.Deflate}[i%2]}
		if strings.HasSuffix(f.name, "/") {
			h.Method = zip.Store
		}
		m, err := w.CreateHeader(h)
		if err == nil {
			_, err = m.Write(f.content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// understood is what a set was read as, or why it was refused, without the path and the kind.
func understood(t testing.TB, location string) string {
	t.Helper()
	s, err := Open(location, Options{})
	if refused, ok := errors.AsType[*FormatError](err); ok {
		return fmt.Sprintf("refused: %s: %s", strings.NewReplacer(location, "", "the archive", "the folder").Replace(
			refused.Got), refused.Hint)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var b strings.Builder
	fmt.Fprintln(&b, s.Layout, s.Classes)
	for _, of := range []Source{s.Train, s.Test} {
		fmt.Fprintln(&b, of != nil)
		for i := 0; of != nil && i < of.Len(); i++ {
			fmt.Fprintln(&b, of.Name(i), of.Label(i))
			if of.Label(i) < 0 || int(of.Label(i)) >= len(s.Classes) {
				t.Fatalf("label %d of classes %q", of.Label(i), s.Classes)
			}
		}
	}
	slices.Sort(s.Notes)
	fmt.Fprintln(&b, strings.ReplaceAll(strings.Join(s.Notes, "\n"), "the archive", "the folder"))
	return b.String()
}

var leftOut = regexp.MustCompile(`(?m)^(\d+) (hidden )?pictures.* left out`)

// checkCount compares the number of pictures of a tree with those of its set and its notes.
func checkCount(t *testing.T, location string, files []file) {
	t.Helper()
	s, err := Open(location, Options{})
	if err != nil {
		return
	}
	defer s.Close()
	want, got := 0, 0
	for _, f := range files {
		if isPicture(f.name) && !strings.Contains(f.name, "__MACOSX") {
			want++
		}
	}
	for _, of := range []Source{s.Train, s.Test} {
		if of != nil {
			got += of.Len()
		}
	}
	for _, m := range leftOut.FindAllStringSubmatch(strings.Join(s.Notes, "\n"), -1) {
		n, _ := strconv.Atoi(m[1])
		got += n
	}
	if got != want {
		t.Errorf("%d pictures in a tree of %d: notes %q", got, want, s.Notes)
	}
}

// A folder, a tar and a zip of any tree are the same set, or are refused for the same reason, and
// each picture is in the set or counted.
func TestAnyTreeIsOneSet(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	words := []string{"train", "Train", "test", "val", "cat", "dog", "images", "masks", "0", "1", "10", "seg_train",
		"seg_test", "extra", "data", "café", "a b", "trainA", ".hidden"}
	trees := 150
	if os.Getenv("FSPDA_LONG") != "" {
		trees = 3000
	}
	opened := 0
	for n := range trees {
		var files []file
		pool := words[:2+r.IntN(len(words)-1)]
		used := map[string]bool{}
		for range 1 + r.IntN(14) {
			var parts []string
			for range r.IntN(4) {
				parts = append(parts, pool[r.IntN(len(pool))])
			}
			name := path.Join(append(parts, fmt.Sprintf("%d", r.IntN(20)))...)
			ext := []string{".png", ".JPG", ".png", ".png", ".webp", ".txt", ".cls", ".json", ".csv"}[r.IntN(9)]
			if r.IntN(4) > 0 {
				ext = ".png"
			}
			content := map[string]string{".txt": "cat", ".cls": fmt.Sprint(r.IntN(3)), ".json": `{"label": 1}`,
				".csv": "file,label\n1.png,2\n"}[ext]
			if used[name+ext] {
				continue
			}
			used[name+ext] = true
			files = append(files, file{name + ext, []byte(content)})
		}
		folder := folderOf(t, files...)
		want := understood(t, folder)
		for name, content := range map[string][]byte{"x.tar": tarOf(t, files...), "x.zip": zipOf(t, files...)} {
			if got := understood(t, written(t, name, content)); got != want {
				t.Fatalf("tree %d: %s is\n%s\nand the folder\n%s\nof %v", n, name, got, want, filesOf(files))
			}
		}
		if checkCount(t, folder, visible(files)); !strings.HasPrefix(want, "refused") {
			opened++
		}
	}
	if opened < trees/10 {
		t.Errorf("%d of %d trees were opened", opened, trees)
	}
}

// visible leaves out the files in hidden folders.
func visible(files []file) (all []file) {
	for _, f := range files {
		if !strings.Contains(f.name, ".hidden/") {
			all = append(all, f)
		}
	}
	return all
}

func filesOf(files []file) (names []string) {
	for _, f := range files {
		names = append(names, f.name)
	}
	return names
}

// truth is a tree that a person would make, and the set that is meant.
type truth struct {
	files       []file
	classes     []string
	train, test map[string]string // classes by picture
}

// spellings are pairs of names of splits.
var spellings = [][2]string{{"train", "val"}, {"train", "test"}, {"Train", "Val"}, {"TRAIN", "TEST"},
	{"Training", "Testing"}, {"training", "validation"}, {"train_set", "test_set"}, {"TrainSet", "TestSet"},
	{"training-data", "valid"}, {"train2017", "val2017"}, {"seg_train", "seg_test"}, {"01_train", "02_dev"},
	{"Train images", "Eval images"}, {"trainset", "testset"}, {"my pets train", "my pets test"}, {"trn", "tst"}}

// someTree draws a tree.
func someTree(r *rand.Rand) (tr truth) {
	pool := []string{"ant", "bus", "cat", "Dog", "10", "2", "émeu", "a b", "train station", "contest", "yak.v2", "猫"}
	r.Shuffle(len(pool), func(i, j int) { pool[i], pool[j] = pool[j], pool[i] })
	tr.classes = slices.Sorted(slices.Values(pool[:2+r.IntN(4)]))
	tr.train, tr.test = map[string]string{}, map[string]string{}
	split := spellings[r.IntN(len(spellings))]
	wrapper := []string{"", "", "data/", "my_dataset_v2/", "archive/images/"}[r.IntN(5)]
	kind := r.IntN(7)
	tables := map[string]string{}
	for _, c := range tr.classes {
		for i := range 2 + r.IntN(4) {
			half, part := tr.train, split[0]
			if i%2 == 1 && kind != 1 {
				half, part = tr.test, split[1]
			}
			base := fmt.Sprintf("%d.%d.png", i, r.IntN(100))
			name := wrapper
			switch kind {
			case 0: // folders of classes in splits
				name += part + "/" + c + "/" + []string{"", "more/"}[i/2%2] + base
			case 1: // folders of classes
				name += c + "/" + base
			case 2: // splits in folders of classes
				name += c + "/" + part + "/" + base
			default: // a table, or files beside the pictures
				name += part + "/" + c + base
			}
			half[name] = c
			tr.files = append(tr.files, file{name, []byte(name)})
			row, _ := strings.CutPrefix(name, wrapper+part+"/")
			switch kind {
			case 3:
				tables[wrapper+part+"/metadata.csv"] += fmt.Sprintf("%s,%q\r\n", row, c)
			case 4:
				tables[wrapper+part+"/metadata.jsonl"] += fmt.Sprintf("{\"file_name\": %q, \"label\": %q}\n", row, c)
			case 5:
				tables[wrapper+part+".csv"] += fmt.Sprintf("%s;%s\n", strings.TrimSuffix(row, ".png"), c)
			case 6:
				tables[strings.TrimSuffix(name, ".png")+".cls"] = c
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(tables)) {
		head := map[string]string{".csv": "file_name,label\r\n"}[path.Ext(name)]
		if kind == 5 {
			head = "\ufeffid;category\n"
		}
		if kind == 6 {
			head = ""
		}
		tr.files = append(tr.files, file{name, []byte(head + tables[name])})
	}
	for _, f := range []file{{wrapper + "README.md", []byte("x")}, {"__MACOSX/._x.png", []byte("x")},
		{".DS_Store", []byte("x")}, {wrapper + "Thumbs.db", nil}} {
		if r.IntN(3) == 0 {
			tr.files = append(tr.files, f)
		}
	}
	return tr
}

// Trees that people make are read as they mean them, from folders, tars and zips.
func TestUsualTrees(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	trees := 60
	if os.Getenv("FSPDA_LONG") != "" {
		trees = 1000
	}
	for n := range trees {
		tr := someTree(r)
		for _, location := range []string{folderOf(t, tr.files...), written(t, "x.tar", tarOf(t, tr.files...)),
			written(t, "x.zip", zipOf(t, tr.files...))} {
			s, err := Open(location, Options{})
			if err != nil {
				t.Fatalf("tree %d: %v: %v", n, err, filesOf(tr.files))
			}
			for half, of := range map[string]Source{"train": s.Train, "test": s.Test} {
				want, got := map[string]map[string]string{"train": tr.train, "test": tr.test}[half], map[string]string{}
				for i := 0; of != nil && i < of.Len(); i++ {
					name := of.Name(i)
					if got[name] = s.Classes[of.Label(i)]; got[name] != want[name] {
						break
					}
					if text, err := of.(Encoded).Encoded(nil, i); err != nil || string(text) != name {
						t.Fatalf("tree %d: %s holds %q: %v", n, name, text, err)
					}
				}
				if !maps.Equal(got, want) {
					t.Fatalf("tree %d: %s is read as %s: %s\n%v, want\n%v\nof %v", n, location, s.Layout, half, got,
						want, filesOf(tr.files))
				}
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
