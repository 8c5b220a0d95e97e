//go:build !windows

package cli

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fspda/cli/weights"
	"fspda/internal/testing/imagetest"
	"fspda/train"
	"fspda/train/safetensors"
)

// tile returns a small picture.
func tile(t *testing.T, n int) []byte {
	m := image.NewNRGBA(image.Rect(0, 0, 8, 8))
	for k := range 64 {
		m.Set(k%8, k/8, color.NRGBA{uint8(31 * n), uint8(4 * k), uint8(n + k), 255})
	}
	return imagetest.PNG(t, m)
}

// layout is a tree of files and whether it is a set of pictures.
type layout struct {
	name  string
	files map[string][]byte
	links map[string]string // links by name, of a tar
	tar   bool
	skip  bool // with a bad picture
}

// at writes a layout and returns its path.
func (l layout) at(t *testing.T) string {
	t.Helper()
	if !l.tar {
		return imageTree(t, l.files)
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(l.files)) {
		if err := w.WriteHeader(&tar.Header{Name: name, Size: int64(len(l.files[name])), Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(l.files[name]); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(l.links)) {
		kind := byte(tar.TypeLink)
		if strings.HasPrefix(l.links[name], "..") {
			kind = tar.TypeSymlink
		}
		if err := w.WriteHeader(&tar.Header{Name: name, Linkname: l.links[name], Typeflag: kind}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	p := filepath.Join(t.TempDir(), "set.tar")
	if err := os.WriteFile(p, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return p
}

// add adds pictures to a layout, numbered below a folder.
func (l *layout) add(t *testing.T, folder string, n int) {
	if l.files == nil {
		l.files = map[string][]byte{}
	}
	for i := range n {
		l.files[path.Join(folder, fmt.Sprintf("%d.png", i))] = tile(t, i+len(folder))
	}
}

// usualLayouts are the kinds of trees of which some were misread.
func usualLayouts(t *testing.T) (all []layout) {
	table := layout{name: "metadata"}
	for _, part := range []string{"train", "test"} {
		table.add(t, part, 4)
		table.files[part+"/metadata.csv"] = []byte("file_name,label\r\n0.png,cat\r\n1.png,dog\r\n" +
			"2.png,cat\r\n3.png,dog\r\n")
	}
	all = append(all, table)
	for _, parts := range [][2]string{{"Train", "Val"}, {"TRAIN", "TEST"}, {"Training", "Testing"}} {
		l := layout{name: parts[0]}
		for _, part := range parts {
			l.add(t, part+"/x", 2)
			l.add(t, part+"/y", 2)
		}
		all = append(all, l)
	}
	first, deeper := layout{name: "classes first"}, layout{name: "one folder too high"}
	for _, c := range []string{"cat", "dog"} {
		for _, part := range []string{"train", "test"} {
			first.add(t, c+"/"+part, 2)
			deeper.add(t, "my_dataset_v2/"+part+"/"+c, 2)
		}
	}
	all = append(all, first, deeper)
	for _, classes := range [][]string{{"bus", "car", "train"}, {"contest", "test", "val"}} {
		for _, isTar := range []bool{false, true} {
			l := layout{name: strings.Join(classes, " "), tar: isTar}
			for _, c := range classes {
				l.add(t, c, 2)
			}
			all = append(all, l)
		}
	}
	linked := layout{name: "hard links", tar: true, links: map[string]string{"train/a/again.png": "train/a/0.png"}}
	linked.add(t, "train/a", 2)
	linked.add(t, "train/b", 2)
	outside := layout{name: "links outside", tar: true, links: map[string]string{"train/a/0.png": "../../../x.png"}}
	dots, bad := layout{name: "keys with dots", tar: true}, layout{name: "a bad picture", skip: true}
	for k := range 4 {
		dots.add(t, fmt.Sprintf("v.1/22.%d", k), 1)
		dots.files[fmt.Sprintf("v.1/22.%d/0.cls", k)] = fmt.Appendf(nil, "%d", k%2)
	}
	for _, c := range []string{"train/a", "train/b", "val/a", "val/b"} {
		bad.add(t, c, 3)
	}
	bad.files["train/a/1.png"] = bad.files["train/a/1.png"][:30]
	flat := layout{name: "no classes"}
	flat.add(t, "train", 3)
	flat.add(t, "val", 3)
	numbers := layout{name: "numbers"}
	for c := range 12 {
		numbers.add(t, fmt.Sprintf("train/%d", c), 1)
		numbers.add(t, fmt.Sprintf("val/%d", c), 1)
	}
	odd := layout{name: "odd names"}
	for _, c := range []string{"a b", "c,d", `e"f`, "猫", "-x", "$(id)", "%s%d", "\u202eabc", "tab\tx"} {
		odd.add(t, "train/"+c, 1)
		odd.add(t, "val/"+c, 1)
	}
	return append(all, linked, outside, dots, bad, flat, numbers, odd)
}

// randomLayout draws a tree that may have any meaning, or none.
func randomLayout(t *testing.T, r *rand.Rand) (l layout) {
	words := []string{"train", "test", "Val", "cat", "dog", "images", "seg_train", "seg_test", "2", "10"}
	pool := words[:2+r.IntN(len(words)-1)]
	l.name, l.tar = "random", r.IntN(3) == 0
	shape := r.IntN(3)
	for range 2 + r.IntN(8) {
		var parts []string
		for range 1 + shape {
			parts = append(parts, pool[r.IntN(len(pool))])
		}
		l.add(t, path.Join(parts...), 1+r.IntN(2))
	}
	if r.IntN(4) == 0 {
		for _, name := range slices.Sorted(maps.Keys(l.files)) {
			l.files[strings.TrimSuffix(name, ".png")+".cls"] = fmt.Appendf(nil, "%d", r.IntN(3))
		}
	}
	return l
}

// info is what data info says in JSON.
type info struct {
	Kind, Layout string
	Classes      []string
	Train, Test  struct{ Pictures int }
}

// agree gives one input to data info, train, data prepare and predict. All must open it as the same
// set, or refuse it.
func agree(t *testing.T, l layout) (opened bool) {
	t.Helper()
	path, out := l.at(t), t.TempDir()
	status, stdout, stderr := call(t, "data", "info", path, "--json")
	var of info
	if err := json.Unmarshal([]byte(stdout), &of); status == 0 && err != nil {
		t.Fatal(err)
	}
	run, packed := filepath.Join(out, "run"), filepath.Join(out, "packed")
	args := []string{"train", "--data", "folder", "--data-dir", path, "--crop", "8", "--hidden", "4", "--agents", "1",
		"--partition", "shuffled", "--batch", "1", "--iterations", "1", "--eval-points", "1", "--device", "cpu",
		"--on-bad", "skip"}
	dry, said, dryErr := call(t, append(args, "--dry-run")...)
	trained, _, log := call(t, append(args, "--out", run)...)
	prepared, _, packing := call(t, "data", "prepare", path, "--out", packed)
	if of.Train.Pictures == 0 && status == 0 { // a set to test on only can be described and prepared
		status = dry
		prepared = dry
	}
	if dry != status || trained != status || prepared != status {
		t.Fatalf("%s: info ends with %d, dry-run %d, train %d, prepare %d: %v\n%s%s%s%s", l.name, status, dry, trained,
			prepared, slices.Sorted(maps.Keys(l.files)), stderr, dryErr, log, packing)
	}
	if status != 0 {
		if l.name != "random" {
			t.Logf("%s: %s", l.name, stderr)
		}
		return false
	}
	tests := of.Test.Pictures
	if tests == 0 {
		tests = of.Train.Pictures
	}
	line := fmt.Sprintf("%s, %s: %d + %d pictures of %d classes", of.Kind, of.Layout, of.Train.Pictures, tests,
		len(of.Classes))
	for name, text := range map[string]string{"dry-run": said + dryErr, "train": log} {
		if !strings.Contains(text, line) {
			t.Errorf("%s: %s does not say %q:\n%s", l.name, name, line, text)
		}
	}
	if !strings.Contains(packing, of.Layout) {
		t.Errorf("%s: prepare does not say %q: %s", l.name, of.Layout, packing)
	}
	bad := 0
	if l.skip {
		bad = 1
	}
	var again info
	_, stdout, _ = call(t, "data", "info", packed, "--json")
	if err := json.Unmarshal([]byte(stdout), &again); err != nil || !slices.Equal(again.Classes, of.Classes) ||
		again.Train.Pictures+bad != of.Train.Pictures || again.Test.Pictures != of.Test.Pictures {
		t.Errorf("%s: the packed set is %+v, info says %+v: %v", l.name, again, of, err)
	}
	status, stdout, stderr = call(t, "predict", run, "--json", "--top", "1000")
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	if status != 0 || len(lines) != tests-bad*b2i(of.Test.Pictures == 0) || !strings.Contains(stderr, line) {
		t.Fatalf("%s: predict ends with %d and %d lines, want %d\n%s", l.name, status, len(lines), tests, stderr)
	}
	var p struct {
		Top []struct {
			Class int
			Name  string
		}
	}
	if err := json.Unmarshal([]byte(lines[0]), &p); err != nil || len(p.Top) != len(of.Classes) {
		t.Fatalf("%s: %d classes are predicted, %v", l.name, len(p.Top), err)
	}
	for _, c := range p.Top {
		if c.Name != of.Classes[c.Class] {
			t.Errorf("%s: class %d is called %q, want %q", l.name, c.Class, c.Name, of.Classes[c.Class])
		}
	}
	return true
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// data info, train, --dry-run, prepare and predict understand every set alike.
func TestCommandsAgree(t *testing.T) {
	refused := map[string]bool{"links outside": true, "no classes": true}
	for _, l := range usualLayouts(t) {
		if agree(t, l) == refused[l.name] {
			t.Errorf("%s: opened is %v", l.name, refused[l.name])
		}
	}
	r, n, opened := rand.New(rand.NewPCG(9, 10)), 5, 0
	if os.Getenv("FSPDA_LONG") != "" {
		n = 200
	}
	for range n {
		if agree(t, randomLayout(t, r)) {
			opened++
		}
	}
	t.Logf("%d of %d random sets were opened", opened, n)
	if opened < n/5 {
		t.Errorf("%d of %d random sets were opened", opened, n)
	}
}

// A run and its exports keep the names of classes: predict prints them for image files, and a set
// with other classes is refused.
func TestClassNamesAreKept(t *testing.T) {
	for _, l := range usualLayouts(t) {
		if l.name != "numbers" && l.name != "odd names" {
			continue
		}
		set, out := l.at(t), t.TempDir()
		run := filepath.Join(out, "run")
		want(t, 0, []string{"train", "--data", "folder", "--data-dir", set, "--crop", "8", "--hidden", "4", "--agents",
			"1", "--partition", "shuffled", "--batch", "1", "--iterations", "1", "--eval-points", "1", "--device",
			"cpu", "--quiet", "--out", run})
		want(t, 0, []string{"export", run}, "mean")
		want(t, 0, []string{"export", run, "--format", "onnx"}, "mean")
		file, _ := safetensors.Open(filepath.Join(run, "mean.safetensors"))
		var names []string
		if err := json.Unmarshal([]byte(file.Metadata()["classes"]), &names); err != nil || len(names) < 9 {
			t.Fatalf("names %q in the file: %v", names, err)
		}
		if err := file.Close(); err != nil {
			t.Error(err)
		}
		text, err := os.ReadFile(filepath.Join(run, "mean.onnx"))
		listed, _ := json.Marshal(names) // texts
		if err != nil || !bytes.Contains(text, listed) {
			t.Errorf("no names in the ONNX file: %v", err)
		}
		saved, err := train.OpenSaved(run)
		if err != nil || !slices.Equal(saved.ClassNames, names) {
			t.Fatalf("names %q in the checkpoint, %v", saved.ClassNames, err)
		}
		if err := saved.Close(); err != nil {
			t.Error(err)
		}
		picture := filepath.Join(out, "x.png")
		if err := os.WriteFile(picture, tile(t, 3), 0o644); err != nil {
			t.Fatal(err)
		}
		shown := []string{"  10: ", "  11: ", "  9: "}
		if l.name == "odd names" {
			shown = []string{"  a b: ", `  e"f: `, "  猫: ", `  "\u202eabc": `, `  "tab\tx": `, "  %s%d: "}
		}
		for _, model := range []string{run, filepath.Join(run, "mean.safetensors")} {
			more := []string{"--top", "12"}
			if model != run {
				more = append(more, "--data", "folder", "--crop", "8", "--device", "cpu")
			}
			want(t, 0, append([]string{"predict", model, picture}, more...), shown...)
		}
	}
	meta := map[string]string{}
	if weights.AddClasses(meta, nil); len(meta) > 0 {
		t.Errorf("metadata %q of no names", meta)
	}
	a, b := layout{}, layout{}
	for _, c := range []string{"cat", "dog"} {
		a.add(t, "train/"+c, 1)
		b.add(t, "train/x"+c, 1)
	}
	run := filepath.Join(t.TempDir(), "run")
	want(t, 0, []string{"train", "--data", "folder", "--data-dir", a.at(t), "--crop", "8", "--hidden", "4", "--agents",
		"1", "--batch", "1", "--iterations", "1", "--eval-points", "1", "--device", "cpu", "--quiet", "--out", run})
	want(t, 2, []string{"eval", run, "--data-dir", b.at(t)}, `class 0 is "xcat", that of the model "cat"`)
}
