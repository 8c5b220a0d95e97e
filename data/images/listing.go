package images

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// Names of the two lists of images in a [listing].
const (
	trainSplit = "train"
	testSplit  = "test"
)

// listing collects images in the order in which they are found, and sorts them at the end.
type listing struct {
	path   string
	kind   string
	found  map[string]*found // pictures found, by split
	other  map[string]int    // number of files that are not images, by extension
	left   map[string]int    // number of pictures that are left out, by reason
	layout string
	notes  []string

	// if positive, classes are the numbers from 0 to numbered-1; 0 means that classes are names
	numbered int
}

// found holds the images of one split.
type found struct {
	pictures []picture
	classes  map[string]int // number of images per class, 0 for an empty folder
	folder   string         // name of the split's folder
}

func newListing(path, kind string) *listing {
	return &listing{path: path, kind: kind, found: map[string]*found{}, other: map[string]int{},
		left: map[string]int{}}
}

func (l *listing) split(name, folder string) *found {
	f := l.found[name]
	if f == nil {
		f = &found{classes: map[string]int{}, folder: folder}
		l.found[name] = f
	}
	return f
}

func (f *found) add(p picture) {
	f.pictures = append(f.pictures, p)
	f.classes[p.class]++
}

// imageFiles are the extensions of isPicture in messages.
const imageFiles = "*.jpg, *.jpeg, *.png, *.gif, *.webp or *.bmp"

// isPicture reports whether a file has the extension of an image.
func isPicture(name string) bool {
	return slices.Contains([]string{".jpg", ".jpeg", ".png", ".gif", ".webp", ".bmp"}, strings.ToLower(path.Ext(name)))
}

// skip counts a file that is not an image.
func (l *listing) skip(name string) {
	ext := cmp.Or(strings.ToLower(path.Ext(name)), "no extension")
	l.other[ext]++
}

// set returns the Set: classes from the training images, or from the test images if there are no
// others.
func (l *listing) set(s store, o Options) (*Set, error) {
	train, test := l.found[trainSplit], l.found[testSplit]
	reference := train
	if reference == nil {
		reference = test
	}
	if reference == nil || len(reference.pictures) == 0 {
		return nil, l.empty()
	}
	if none := without(reference.classes); len(none) > 0 && l.numbered == 0 {
		return nil, &FormatError{Path: l.path, Got: fmt.Sprintf("no picture in class %s of %s", some(none),
			reference.folder), Want: imageFiles + " in each class", Hint: "add pictures, or remove the empty folder"}
	}
	out := &Set{Path: l.path, Kind: l.kind, Layout: l.layout}
	if l.numbered > 0 {
		out.Classes = l.classNames(reference)
	} else {
		out.Classes = slices.Sorted(maps.Keys(reference.classes))
	}
	if train != nil {
		out.Train = l.source(train, out.Classes, s, o)
	}
	if test != nil && len(test.pictures) > 0 {
		if train != nil {
			if err := l.compare(train, test); err != nil {
				return nil, err
			}
		}
		out.Test = l.source(test, out.Classes, s, o)
	}
	if len(out.Classes) == 1 {
		return nil, &FormatError{Path: l.path, Got: "pictures of one class, " + out.Classes[0], Want: "two or more",
			Hint: folderOfClasses}
	}
	out.Notes = slices.Concat(l.notes, l.skipped(), twice(out.Classes))
	return out, nil
}

// source assigns labels to the images and sorts them.
func (l *listing) source(f *found, classes []string, s store, o Options) *split {
	label := make(map[string]int32, len(classes))
	for i, c := range classes {
		label[c] = int32(i)
	}
	for i := range f.pictures {
		f.pictures[i].label = label[f.pictures[i].class]
	}
	slices.SortStableFunc(f.pictures, func(a, b picture) int {
		return cmp.Or(cmp.Compare(a.label, b.label), strings.Compare(a.name, b.name))
	})
	return &split{path: l.path, pictures: f.pictures, store: s, maxPixels: o.MaxPixels}
}

// compare checks the test classes against the training classes: additional classes are an error,
// missing ones a note.
func (l *listing) compare(train, test *found) error {
	test.respell(train.classes)
	var extra, missing []string
	for c, n := range test.classes {
		if _, ok := train.classes[c]; !ok && n > 0 {
			extra = append(extra, c)
		}
	}
	for c := range train.classes {
		if test.classes[c] == 0 {
			missing = append(missing, c)
		}
	}
	if len(extra) > 0 {
		slices.Sort(extra)
		return &FormatError{Path: l.path, Got: fmt.Sprintf("class %s in %s only", some(extra), test.folder),
			Want: "no class that " + train.folder +
				" has not", Hint: "a class is named as its folder; the spelling must be the same in both"}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		l.notes = append(l.notes, fmt.Sprintf("class %s of %s has no picture in %s: its accuracy is not measured",
			some(missing), train.folder, test.folder))
	}
	return nil
}

// canonical returns the form of a name in which equal names have equal bytes: macOS writes é as e
// with an accent that is a character of its own, other systems as one character.
func canonical(name string) string { return norm.NFC.String(name) }

// respell gives classes the spelling of known ones that are the same name in another form of
// Unicode.
func (f *found) respell(known map[string]int) {
	spelled := map[string]string{}
	for c := range known {
		spelled[canonical(c)] = c
	}
	for c, n := range f.classes {
		if as, ok := spelled[canonical(c)]; ok && known[c] == 0 && as != c {
			f.classes[as] += n
			delete(f.classes, c)
		}
	}
	for i, p := range f.pictures {
		if as, ok := spelled[canonical(p.class)]; ok && known[p.class] == 0 {
			f.pictures[i].class = as
		}
	}
}

// twice returns a note on classes that are the same name in several forms of Unicode.
func twice(classes []string) []string {
	var same []string
	seen := map[string]bool{}
	for _, c := range classes {
		if seen[canonical(c)] {
			same = append(same, c)
		}
		seen[canonical(c)] = true
	}
	if same == nil {
		return nil
	}
	return []string{fmt.Sprintf("class %s is there in two forms of Unicode, which are two classes: give the "+
		"folders one name if they are one", some(same))}
}

func (l *listing) empty() error {
	e := &FormatError{Path: l.path, Got: "no picture", Err: ErrNoPictures,
		Want: "pictures " + imageFiles + " as CLASS/NAME.jpg, below train and val (or test)"}
	if s := append(l.notes, l.skipped()...); len(s) > 0 {
		e.Got += "; " + strings.Join(s, "; ")
	}
	return e
}

// skipped returns a note with the number of ignored files.
func (l *listing) skipped() []string {
	var notes []string
	for _, reason := range slices.Sorted(maps.Keys(l.left)) {
		notes = append(notes, fmt.Sprintf("%d pictures %s were left out", l.left[reason], reason))
	}
	for _, ext := range slices.Sorted(maps.Keys(l.other)) {
		notes = append(notes, fmt.Sprintf("%d files that are no %s were left out (%s)",
			l.other[ext], imageFiles, ext))
	}
	return notes
}

func without(classes map[string]int) []string {
	var none []string
	for c, n := range classes {
		if n == 0 {
			none = append(none, c)
		}
	}
	slices.Sort(none)
	return none
}

// some lists the first of many names.
func some(names []string) string {
	const most = 5
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
