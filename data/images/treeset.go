package images

import (
	"cmp"
	"path"
	"path/filepath"
	"strings"
)

const (
	kindFolders    = "class folders"
	kindTars       = "ImageNet tars"
	kindWebDataset = "WebDataset"
)

// set lists the pictures of a tree: with the labels beside them or in tables, or else by the names of
// folders.
func (t *tree) set(o Options) (*Set, error) {
	kind := kindFolders
	if t.archives != nil {
		kind = t.kind + " of " + kindFolders
	}
	l := newListing(t.path, kind)
	l.notes = append(l.notes, t.notes...)
	all := t.folders()
	root := all[""]
	if root.total == 0 {
		t.skip(l, nil)
		return nil, l.empty()
	}
	a := arrange(root)
	if t.several && a.level == nil && a.trouble == "" {
		a.trouble, a.hint = "archives of class folders whose names are no splits", "name one archive"
	}
	lab, err := t.labels(&a, all, o)
	if err != nil {
		return nil, err
	}
	switch {
	case lab != nil && lab.only == "":
		err = t.byLabel(l, lab, &a, all)
	case a.trouble != "":
		e := &FormatError{Path: l.path, Got: a.trouble, Hint: a.hint,
			Want: "CLASS/NAME.jpg below train and val (or test), or labels in metadata.csv or beside the pictures"}
		if s := append(l.notes, t.skip(l, nil).skipped()...); len(s) > 0 {
			e.Got += "; " + strings.Join(s, "; ")
		}
		return nil, e
	default:
		t.byFolder(l, lab, &a, all)
	}
	if err != nil {
		return nil, err
	}
	return l.set(t.store, o)
}

// skip counts the files that are neither pictures nor labels.
func (t *tree) skip(l *listing, lab *labels) *listing {
	for i, e := range t.entries {
		if !e.dir && !isPicture(e.name) && (lab == nil || !lab.used[i]) {
			l.skip(e.name)
		}
	}
	return l
}

// byFolder lists pictures whose classes are the names of folders. The labels, if there are any, are
// those of a test folder without folders of classes.
func (t *tree) byFolder(l *listing, lab *labels, a *arrangement, all map[string]*node) {
	a.mark(all[""], false)
	l.layout = a.String()
	if a.note != "" {
		l.notes = append(l.notes, a.note)
	}
	whole := "the folder"
	if t.archives != nil {
		whole = "the archive"
	}
	for split, of := range map[string][]*node{trainSplit: a.train, testSplit: a.test} {
		for _, n := range of {
			name := cmp.Or(n.name, whole)
			if of := a.splitOf(split); of != nil {
				name = of.name
			}
			f := l.split(split, name)
			for _, k := range n.kids {
				if !a.classFirst {
					f.classes[k.name] += 0
				}
			}
		}
	}
	if lab != nil {
		l.split(testSplit, lab.only)
		l.layout += ", test " + lab.only + " by " + lab.about
		l.notes = append(l.notes, lab.notes...)
	}
	for i, e := range t.entries {
		if e.dir || !isPicture(e.name) {
			continue
		}
		n := all[parent(e.name)]
		split, class := n.split, n.class
		if lab != nil && lab.class[i] != "" {
			split, class = testSplit, lab.class[i]
		}
		if class == "" {
			l.left[n.left]++
			continue
		}
		l.found[split].add(picture{name: e.name, class: class, at: e.at})
	}
	t.skip(l, lab)
}

// parent is the folder of a name.
func parent(name string) string {
	if dir := path.Dir(name); dir != "." {
		return dir
	}
	return ""
}

// byLabel lists pictures whose classes are in files.
func (t *tree) byLabel(l *listing, lab *labels, a *arrangement, all map[string]*node) error {
	if l.kind = "pictures with labels"; lab.beside && t.kind == "tar" {
		l.kind = kindWebDataset
	}
	a.mark(all[""], true)
	for i, e := range t.entries {
		if e.dir || !isPicture(e.name) {
			continue
		}
		split, word, reason := t.splitOf(e, a, all[parent(e.name)])
		if lab.split[i] != "" {
			split, word, reason = lab.split[i], lab.split[i], ""
		}
		switch {
		case reason != "":
			l.left[reason]++
		case lab.class[i] != "":
			l.split(split, word).add(picture{name: e.name, class: lab.class[i], at: e.at})
		case lab.beside:
			return &FormatError{Path: t.where(e), Got: "picture " + e.name + " without a label",
				Want: stemOf(e.name) + ".cls, or " + stemOf(e.name) + `.json with "label"`}
		default:
			l.left["without a label"]++
		}
	}
	l.notes = append(l.notes, lab.notes...)
	var parts []string
	for _, s := range []struct{ split, name string }{{trainSplit, "training"}, {testSplit, "test"}} {
		if f := l.found[s.split]; f != nil && f.folder == s.split {
			parts = append(parts, s.name)
		} else if f != nil {
			parts = append(parts, s.name+" "+f.folder)
		}
	}
	l.layout = strings.Join(parts, " and ") + ", labels of " + lab.about
	t.skip(l, lab)
	l.numberClasses()
	if !lab.beside && l.numbered > maxSparse && l.numbered > 4*lab.distinct() { // numbers that are names
		l.numbered = 0
	}
	return nil
}

// splitOf returns the split of a picture with a label, the word that says it, and the reason why it is
// left out, if it is.
func (t *tree) splitOf(e entry, a *arrangement, n *node) (split, word, reason string) {
	split, reason = n.split, n.left
	if of := a.splitOf(split); of != nil {
		word = of.name
	}
	if t.several || t.archives != nil && split == "" && reason == "" {
		split, word = splitOfFile(filepath.Base(t.where(e)))
		reason = ""
	}
	split = cmp.Or(split, trainSplit)
	return split, cmp.Or(word, split), reason
}

// maxSparse is the number of classes up to which numbers of classes may have gaps.
const maxSparse = 1024

// stemOf is a name without its extension.
func stemOf(name string) string { return strings.TrimSuffix(name, path.Ext(name)) }
