package images

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// labels are classes of pictures that files say.
type labels struct {
	class  []string // the class of each entry; "": not known
	split  []string // the split of each entry; "": the table does not say
	used   map[int]bool
	about  string // the files, in words
	beside bool   // each picture has a file of its own
	only   string // the test folder whose pictures alone have labels; "": all
	notes  []string
}

func newLabels(t *tree) *labels {
	return &labels{class: make([]string, len(t.entries)), split: make([]string, len(t.entries)), used: map[int]bool{}}
}

// distinct counts the classes.
func (l *labels) distinct() int {
	seen := map[string]bool{}
	for _, c := range l.class {
		if c != "" {
			seen[c] = true
		}
	}
	return len(seen)
}

// labels finds the labels that files say: beside pictures, in the metadata of Hugging Face, or, where
// folders name no classes, in other tables. It returns nil if there are none.
func (t *tree) labels(a *arrangement, all map[string]*node, o Options) (*labels, error) {
	needed := a.trouble != ""
	beside := t.beside()
	if ok, err := beside.hasLabels(needed, ".cls", ".json"); err != nil {
		return nil, err
	} else if ok {
		return beside.labels(".cls", ".json")
	}
	tables := t.tables()
	named := o.LabelColumn != "" || o.ImageColumn != ""
	if len(tables) == 0 && named {
		return nil, o.refuseColumns(t.path)
	}
	meta := slices.DeleteFunc(slices.Clone(tables), func(i int) bool {
		return !strings.HasPrefix(strings.ToLower(path.Base(t.entries[i].name)), "metadata.")
	})
	for _, files := range [][]int{meta, tables} {
		if len(files) == 0 || len(meta) == 0 && !needed && !named {
			continue
		}
		lab, err := t.fromTables(files, nil, a, all, o)
		if err != nil && needed {
			return nil, err
		}
		if lab != nil && (needed || named || !t.sameAsFolders(lab, a, all)) {
			return lab, nil
		}
		if !needed {
			break
		}
	}
	if !needed {
		return t.flatTest(a, tables, all, o)
	}
	if ok, err := beside.hasLabels(true, ".txt"); err != nil || !ok {
		return nil, err
	}
	return beside.labels(".txt")
}

// sameAsFolders reports whether folders and labels divide the pictures alike.
func (t *tree) sameAsFolders(lab *labels, a *arrangement, all map[string]*node) bool {
	a.mark(all[""], false)
	byFolder, byLabel := map[string]string{}, map[string]string{}
	for i, e := range t.entries {
		if e.dir || lab.class[i] == "" {
			continue
		}
		class := all[parent(e.name)].class
		if old, ok := byFolder[class]; ok && old != lab.class[i] {
			return false
		}
		if old, ok := byLabel[lab.class[i]]; ok && old != class {
			return false
		}
		byFolder[class], byLabel[lab.class[i]] = lab.class[i], class
	}
	return true
}

// flatTest finds labels of a test folder without folders of classes, which are the classes of
// training.
func (t *tree) flatTest(a *arrangement, tables []int, all map[string]*node, o Options) (*labels, error) {
	if a.level == nil || a.level.train == nil || a.level.test == nil || len(a.test) > 0 {
		return nil, nil
	}
	known := map[string]bool{}
	for _, k := range a.train[0].kids {
		known[canonical(k.name)] = true
	}
	lab, err := t.fromTables(tables, known, a, all, o)
	if lab == nil || err != nil {
		return nil, nil // the pictures are left out, with their number
	}
	for i, e := range t.entries {
		if e.name != a.level.test.path && !strings.HasPrefix(e.name, a.level.test.path+"/") {
			lab.class[i] = ""
		}
	}
	lab.only = a.level.test.path
	return lab, nil
}

const (
	maxTable  = 256 << 20 // bytes of a table of labels
	maxTables = 64        // tables that are read
	headRows  = 64        // rows that are looked at to choose columns
)

func (t *tree) tables() (files []int) {
	for i, e := range t.entries {
		base := strings.ToLower(path.Base(e.name))
		if e.dir || strings.Contains(base, "submission") {
			continue
		}
		switch path.Ext(base) {
		case ".csv", ".tsv", ".jsonl", ".txt":
			files = append(files, i)
		}
	}
	if len(files) > maxTables { // files that belong to single pictures
		files = slices.DeleteFunc(files, func(i int) bool { return strings.HasSuffix(t.entries[i].name, ".txt") })
	}
	return files[:min(len(files), maxTables)]
}

type labelTable struct {
	name    string
	columns []string // names; nil if the table has no head
	rows    [][]string
	lines   []int
}

func (t *tree) readTable(i int) (*labelTable, error) {
	e := t.entries[i]
	text, err := t.read(e, maxTable)
	if err != nil {
		return nil, err
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	table := &labelTable{name: e.name}
	switch strings.ToLower(path.Ext(e.name)) {
	case ".jsonl":
		err = table.readJSON(text)
	case ".txt":
		table.readWords(text)
	default:
		err = table.readCSV(text)
	}
	if err != nil {
		return nil, &FormatError{Path: t.where(e), Got: e.name + ": " + err.Error(), Want: "a table of labels",
			Err: err}
	}
	return table, nil
}

func (t *labelTable) readCSV(text []byte) error {
	first, _, _ := bytes.Cut(text, []byte("\n"))
	r := csv.NewReader(bytes.NewReader(text))
	r.FieldsPerRecord, r.LazyQuotes = -1, true
	for _, comma := range "\t;" {
		if bytes.Count(first, []byte(string(comma))) > bytes.Count(first, []byte(string(r.Comma))) {
			r.Comma = comma
		}
	}
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		line, _ := r.FieldPos(0)
		t.rows, t.lines = append(t.rows, row), append(t.lines, line)
	}
}

func (t *labelTable) readWords(text []byte) {
	s := bufio.NewScanner(bytes.NewReader(text))
	s.Buffer(nil, 1<<20)
	for line := 1; s.Scan(); line++ {
		words := strings.FieldsFunc(s.Text(), func(r rune) bool { return strings.ContainsRune(", \t\r", r) })
		if len(words) > 1 {
			t.rows, t.lines = append(t.rows, words), append(t.lines, line)
		}
	}
}

func (t *labelTable) readJSON(text []byte) error {
	at, line := map[string]int{}, 0
	t.columns = []string{}
	for each := range bytes.Lines(text) {
		if line++; len(bytes.TrimSpace(each)) == 0 {
			continue
		}
		var fields map[string]any
		d := json.NewDecoder(bytes.NewReader(each))
		d.UseNumber()
		if err := d.Decode(&fields); err != nil {
			return fmt.Errorf("line %d: %w", line, err)
		}
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			if _, ok := at[name]; !ok {
				at[name] = len(at)
				t.columns = append(t.columns, name)
			}
		}
		row := make([]string, len(at))
		for name, v := range fields {
			switch v.(type) {
			case string, json.Number, bool:
				row[at[name]] = fmt.Sprint(v)
			}
		}
		t.rows, t.lines = append(t.rows, row), append(t.lines, line)
	}
	return nil
}

// cell returns a value of a row, which may be short.
func cell(row []string, column int) string {
	if column < 0 || column >= len(row) {
		return ""
	}
	return strings.TrimSpace(row[column])
}

// finder finds the pictures that the rows of a table name.
type finder struct {
	tree   *tree
	folder map[string]*node
	whole  map[string]int   // entries by path
	parts  map[string][]int // entries by base name, with and without extension
}

func (t *tree) finder(all map[string]*node) *finder {
	f := &finder{tree: t, folder: all, whole: map[string]int{}, parts: map[string][]int{}}
	for i, e := range t.entries {
		if e.dir || !isPicture(e.name) {
			continue
		}
		name := canonical(e.name)
		f.whole[name] = i
		f.parts[path.Base(name)] = append(f.parts[path.Base(name)], i)
		f.parts[stem(name)] = append(f.parts[stem(name)], i)
	}
	return f
}

// errSeveral is the error of a name that several pictures have.
var errSeveral = errors.New("names several pictures")

// find returns the picture that a table in a folder names by its path, which may begin above the
// folder, or by its name alone; -1 if there is none. Of several the one of the table's split is meant.
func (f *finder) find(dir, split, name string) (int, error) {
	name = canonical(strings.TrimLeft(path.Clean(strings.ReplaceAll(name, `\`, "/")), "/"))
	if name == "." || len(name) > 4096 {
		return -1, nil
	}
	if i, ok := f.whole[canonical(path.Join(dir, name))]; ok {
		return i, nil
	}
	if i, ok := f.whole[name]; ok {
		return i, nil
	}
	found := f.parts[path.Base(name)]
	narrow := func(keep func(e entry) bool) {
		var kept []int
		for _, i := range found {
			if keep(f.tree.entries[i]) {
				kept = append(kept, i)
			}
		}
		if len(kept) > 0 {
			found = kept
		}
	}
	if len(found) > 1 {
		for tail := name; strings.Contains(tail, "/"); {
			narrow(func(e entry) bool {
				name := canonical("/" + e.name)
				return strings.HasSuffix(name, "/"+tail) || strings.HasSuffix(stemOf(name), "/"+tail)
			})
			if _, tail, _ = strings.Cut(tail, "/"); len(found) == 1 {
				break
			}
		}
		narrow(func(e entry) bool { return dir == "" || strings.HasPrefix(e.name, dir+"/") })
		narrow(func(e entry) bool { return split != "" && f.folder[parent(e.name)].split == split })
	}
	switch len(found) {
	case 0:
		return -1, nil
	case 1:
		return found[0], nil
	}
	return -1, errSeveral
}

// columns are the numbers of a table's columns for pictures, labels and splits.
type columns struct{ picture, label, split int }

// labelNames are usual names of a column of labels, the best first.
var labelNames = []string{"label", "labels", "class", "classes", "class_name", "classname", "cls", "category", "target",
	"label_name", "class_id", "label_id", "target_name", "species", "breed", "y"}

// pictureNames are usual names of a column of pictures.
var pictureNames = []string{"file_name", "filename", "file", "filepath", "filepaths", "file_path", "path", "image",
	"image_name", "image_id", "image_path", "imageid", "img", "picture", "id", "name"}

func isNamed(column string, names []string) bool {
	return slices.Contains(names, strings.ToLower(strings.TrimSpace(column)))
}

// splitColumns are names of a column that says the split.
var splitColumns = []string{"split", "set", "subset", "data set", "dataset", "partition", "phase"}

// takeHead takes the first row as the names of the columns, unless it names a picture.
func (t *labelTable) takeHead(f *finder, dir, split string) {
	if t.columns != nil || len(t.rows) == 0 {
		return
	}
	t.columns = make([]string, len(t.rows[0]))
	if len(t.rows) > 1 && !slices.ContainsFunc(t.rows[0], func(v string) bool {
		i, err := f.find(dir, split, strings.TrimSpace(v))
		return i >= 0 || err != nil
	}) {
		copy(t.columns, t.rows[0])
		t.rows, t.lines = t.rows[1:], t.lines[1:]
	}
}

// choose finds the columns of a table. Known classes are those of training, if they are known.
func (t *labelTable) choose(f *finder, dir, split string, known map[string]bool, o Options) (c columns, ok bool,
	err error) {
	t.takeHead(f, dir, split)
	c = columns{-1, -1, -1}
	looked := t.rows[:min(len(t.rows), headRows)]
	usual := slices.ContainsFunc(t.columns, func(name string) bool { return isNamed(name, pictureNames) })
	most := len(looked) / 4
	for k, name := range t.columns {
		found, splits := 0, 0
		for _, row := range looked {
			v := cell(row, k)
			if i, err := f.find(dir, split, v); i >= 0 || err != nil {
				found++
			}
			if parseSplit(v).strict() {
				splits++
			}
		}
		switch {
		case isNamed(name, splitColumns) && splits == len(looked):
			c.split = k
		case o.ImageColumn != "" && o.ImageColumn == name && found > 0:
			c.picture, most = k, len(looked)
		case found > most && o.ImageColumn == "" && !isNamed(name, labelNames) &&
			(!usual || isNamed(name, pictureNames)):
			c.picture, most = k, found
		}
	}
	if c.picture < 0 {
		return c, false, nil
	}
	c.label = t.labelColumn(c, looked, known, o)
	if c.label < 0 && known == nil && strings.Join(t.columns, "") != "" && path.Ext(t.name) != ".txt" {
		return c, false, &FormatError{Path: path.Join(f.tree.path, t.name),
			Got: "the columns " + strings.Join(t.columns, ", "), Hint: "name it with --label-column",
			Want: "one of labels: " + strings.Join(labelNames[:8], ", ")}
	}
	return c, c.label >= 0, nil
}

// labelColumn finds the column of the labels; -1 if none is clear.
func (t *labelTable) labelColumn(c columns, looked [][]string, known map[string]bool, o Options) int {
	var others []int
	for k := range t.columns {
		if k != c.picture && k != c.split {
			others = append(others, k)
		}
	}
	if known != nil {
		for _, k := range others {
			if len(looked) > 0 && !slices.ContainsFunc(looked, func(row []string) bool {
				return !known[canonical(firstWord(cell(row, k)))]
			}) {
				return k
			}
		}
		return -1
	}
	wanted := labelNames
	if o.LabelColumn != "" {
		wanted, others = []string{o.LabelColumn}, nil
	}
	for _, name := range wanted {
		if k := slices.IndexFunc(t.columns, func(have string) bool {
			return strings.EqualFold(strings.TrimSpace(have), name)
		}); k >= 0 && k != c.picture {
			return k
		}
	}
	if len(others) == 1 && !isNamed(t.columns[others[0]], captionNames) && repeated(looked, others[0]) {
		return others[0]
	}
	return -1
}

// captionNames are names of columns that say more than a class.
var captionNames = []string{"text", "caption", "captions", "prompt", "description", "title", "url"}

// repeated reports whether a column has few rows, or values that occur again, as labels do.
func repeated(rows [][]string, column int) bool {
	seen := map[string]bool{}
	for _, row := range rows {
		seen[cell(row, column)] = true
	}
	return len(rows) <= 3 || len(seen) < len(rows)
}

func firstWord(s string) string {
	s, _, _ = strings.Cut(s, " ")
	return s
}

// fromTables reads the labels of tables; nil if they name no picture.
func (t *tree) fromTables(files []int, known map[string]bool, a *arrangement, all map[string]*node,
	o Options) (*labels, error) {
	a.mark(all[""], true)
	f := t.finder(all)
	lab := newLabels(t)
	var about []string
	var unclear error
	for _, i := range files {
		table, err := t.readTable(i)
		if err != nil {
			if path.Ext(t.entries[i].name) == ".txt" {
				continue
			}
			return nil, err
		}
		dir := parent(table.name)
		split, _ := splitOfFile(path.Base(table.name))
		if n := all[dir]; split == "" && n != nil {
			split = n.split
		}
		c, ok, err := table.choose(f, dir, split, known, o)
		if err != nil {
			unclear = err
		}
		if !ok {
			continue
		}
		if err := lab.take(table, c, f, dir, split, known); err != nil {
			return nil, err
		}
		lab.used[i] = true
		text := table.name
		if name := table.columns[c.label]; name != "" {
			text += " (column " + name + ")"
		}
		about = append(about, text)
	}
	if lab.distinct() == 0 {
		return nil, unclear
	}
	lab.about = some(about)
	return lab, nil
}

func (l *labels) take(t *labelTable, c columns, f *finder, dir, split string, known map[string]bool) error {
	named, _ := splitOfFile(path.Base(t.name))
	missing, unlabelled := 0, 0
	for k, row := range t.rows {
		wrong := func(got, hint string) error {
			return &FormatError{Path: path.Join(f.tree.path, t.name), Got: fmt.Sprintf("line %d: %s", t.lines[k], got),
				Want: "a picture and its label", Hint: hint}
		}
		picture, text := cell(row, c.picture), cell(row, c.label)
		if picture == "" && text == "" {
			continue
		}
		i, err := f.find(dir, split, picture)
		switch {
		case err != nil:
			return wrong(picture+" "+err.Error(), "write paths, not names alone")
		case i < 0:
			missing++
			continue
		case known != nil:
			text = firstWord(text)
			if !known[canonical(text)] {
				return wrong("class "+text, "")
			}
		case text == "" || text == "-1":
			unlabelled++
			continue
		}
		class := text
		if known == nil {
			if class, err = checkLabel(text); err != nil {
				return wrong(err.Error(), "name another column with --label-column")
			}
		}
		if old := l.class[i]; old != "" && old != class {
			return wrong(fmt.Sprintf("label %s of %s, which has label %s", class, picture, old),
				"a picture has one class")
		}
		l.class[i] = class
		if l.split[i] = named; c.split >= 0 {
			l.split[i] = parseSplit(cell(row, c.split)).split
		}
		if f.folder[parent(f.tree.entries[i].name)].split != "" && c.split < 0 {
			l.split[i] = ""
		}
	}
	for _, n := range []struct {
		n    int
		text string
	}{{missing, "rows of %s name no picture"},
		{unlabelled, "rows of %s have no label, and their pictures were left out"}} {
		if n.n > 0 {
			l.notes = append(l.notes, strconv.Itoa(n.n)+" "+fmt.Sprintf(n.text, t.name))
		}
	}
	return nil
}
