package images

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// node is a folder that has pictures in it or below, or is empty.
type node struct {
	name, path string
	kids       []*node
	direct     int // pictures in the folder itself
	total      int // pictures in it and below

	split string // split of its pictures; "" if they are left out
	class string // class of its pictures; "" if no folder says it
	left  string // reason why its pictures are left out
}

// alive lists the folders in a folder that have pictures.
func (n *node) alive() (all []*node) {
	for _, k := range n.kids {
		if k.total > 0 {
			all = append(all, k)
		}
	}
	return all
}

// deep reports whether folders in a folder have pictures.
func (n *node) deep() bool { return len(n.alive()) > 0 }

// names lists the names of folders, sorted.
func names(of []*node) (all []string) {
	for _, n := range of {
		all = append(all, n.name)
	}
	slices.Sort(all)
	return all
}

func (t *tree) folders() map[string]*node {
	all := map[string]*node{"": {}}
	var of func(dir string) *node
	of = func(dir string) *node {
		if dir == "." {
			dir = ""
		}
		n := all[dir]
		if n == nil {
			n = &node{name: path.Base(dir), path: dir}
			all[dir] = n
			up := of(path.Dir(dir))
			up.kids = append(up.kids, n)
		}
		return n
	}
	for _, e := range t.entries {
		if e.dir {
			of(e.name)
		} else if n := of(path.Dir(e.name)); isPicture(e.name) {
			n.direct++
		}
	}
	var sum func(n *node) int
	sum = func(n *node) int {
		n.total = n.direct
		for _, k := range n.kids {
			n.total += sum(k)
		}
		slices.SortFunc(n.kids, func(a, b *node) int { return strings.Compare(a.name, b.name) })
		return n.total
	}
	sum(all[""])
	return all
}

// level are the splits that the folders in a folder are.
type level struct {
	train, test *node   // nil if there is none
	left        []*node // folders that are not used
	ambiguous   string  // why the folders may be splits or classes; "" if there is no doubt
}

// splits reads the names of the folders in a folder as splits; nil: they are none. Folders are
// splits if all of them are named so, or some are and have classes in them. Words that all names
// share, as in seg_train and seg_test, say nothing.
func (n *node) splits() *level {
	alive := n.alive()
	parsed := map[*node]splitName{}
	var named, others []*node
	kinds := map[string]bool{}
	rests := map[string]bool{}
	deep := false
	for _, k := range alive {
		s := parseSplit(k.name)
		if parsed[k] = s; s.split == "" {
			others = append(others, k)
			continue
		}
		named = append(named, k)
		kinds[s.split] = true
		rests[s.rest] = true
		deep = deep || k.deep()
	}
	both := kinds[trainSplit] && kinds[testSplit]
	if len(rests) > 1 && rests[""] { // train and crash_test: only names without other words count
		named = slices.DeleteFunc(named, func(k *node) bool {
			if parsed[k].strict() {
				return false
			}
			others = append(others, k)
			return true
		})
		kinds, deep = map[string]bool{}, false
		for _, k := range named {
			kinds[parsed[k].split] = true
			deep = deep || k.deep()
		}
		both, rests = kinds[trainSplit] && kinds[testSplit], map[string]bool{"": true}
	}
	switch {
	case len(named) == 0 || !rests[""] && !both:
		return nil
	case len(rests) > 1:
		if len(others) > 0 {
			return nil
		}
		return &level{ambiguous: "splits and classes in one name: " + some(names(named))}
	case len(others) == 0:
	case !deep: // car, bus and train are classes
		return nil
	case !both || !slices.ContainsFunc(named, func(k *node) bool { return parsed[k].split == trainSplit && k.deep() }):
		return &level{ambiguous: "splits or classes: " + some(names(alive))}
	}
	return choose(named, others, parsed)
}

// choose selects one folder of training and one of test.
func choose(named, others []*node, parsed map[*node]splitName) *level {
	l := &level{left: others}
	for _, k := range named {
		to := &l.train
		if parsed[k].split == testSplit {
			to = &l.test
		}
		switch old := *to; {
		case old == nil:
			*to = k
		case parsed[old].split == testSplit && parsed[old].word != parsed[k].word:
			if k.deep() != old.deep() && k.deep() || k.deep() == old.deep() &&
				preferred(parsed[old].word, parsed[k].word) == parsed[k].word {
				*to, k = k, old
			}
			l.left = append(l.left, k)
		default:
			l.ambiguous = "several folders of one split: " + old.name + ", " + k.name
		}
	}
	return l
}

// unwrap goes down through folders that hold nothing but one folder, which is neither a split nor a
// class.
func (n *node) unwrap() *node {
	for {
		alive := n.alive()
		if len(alive) != 1 {
			return n
		}
		k := alive[0]
		if inner := k.splits(); inner != nil && inner.train != nil && (inner.test != nil || inner.train.deep()) {
			n = k
			continue
		}
		if !k.deep() || k.direct > 0 || n.direct > 0 || n.splits() != nil {
			return n
		}
		n = k
	}
}

// arrangement is a layout of pictures in folders.
type arrangement struct {
	top         *node
	level       *level  // splits that folders are named as; nil if there are none
	train, test []*node // folders that hold classes, or with classFirst one of each class
	classFirst  bool
	left        []*node
	trouble     string // why folders say no classes; "" if they do
	hint        string
	note        string
}

const folderOfClasses = "name a folder with a folder for each class"

// arrange finds splits and classes in the names of folders.
func arrange(root *node) (a arrangement) {
	a.top = root.unwrap()
	l := a.top.splits()
	a.level = l
	switch {
	case l != nil && l.ambiguous != "":
		a.trouble, a.hint = l.ambiguous, "name one of these folders, or rename them"
		return a
	case l != nil:
		a.left = l.left
		a.train, a.test = add(nil, l.train), add(nil, l.test)
		if l.test != nil {
			for _, k := range l.left {
				if s := parseSplit(k.name); s.split == testSplit && k.total > 0 {
					a.note = fmt.Sprintf("of %s and %s, %s is taken", k.name, l.test.name, l.test.name)
				}
			}
		}
		a.checkSplits()
		return a
	}
	if a.isClassFirst() {
		return a
	}
	if inner := a.top.inner(3); len(inner) > 0 {
		a.trouble, a.hint = "folders of splits in "+some(inner), "name the folder whose folders are the splits"
		return a
	}
	a.train = []*node{a.top}
	a.checkClasses()
	if alive := a.top.alive(); len(alive) < 2 {
		a.trouble, a.hint = "pictures in one folder, "+path.Base(a.top.path), folderOfClasses
		if len(alive) == 1 {
			a.trouble = "pictures of one class, " + alive[0].name
		} else if a.top.path == "" {
			a.trouble = "pictures without folders of classes"
		}
	}
	return a
}

// splitOf returns the folder that is named as a split; nil if there is none.
func (a *arrangement) splitOf(split string) *node {
	switch {
	case a.level == nil:
		return nil
	case split == trainSplit:
		return a.level.train
	case split == testSplit:
		return a.level.test
	}
	return nil
}

// roles are words for the parts of a set that are no classes.
var roles = []string{"mask", "masks", "label", "labels", "annotation", "annotations", "segmentation", "gt", "truth",
	"ground", "groundtruth", "metadata", "thumbnails", "thumbs"}

// noClass reports whether a name says a part of a set.
func noClass(name string) bool {
	words := wordsOf(name)
	return len(words) > 0 && !slices.ContainsFunc(words, func(w string) bool {
		return !slices.Contains(roles, w) && !slices.Contains(besides, w)
	})
}

// checkClasses refuses folders that are parts of a set, such as images and masks.
func (a *arrangement) checkClasses() {
	alive := a.train[0].alive()
	if !slices.ContainsFunc(alive, func(k *node) bool { return !noClass(k.name) }) {
		a.trouble, a.hint = "folders that name no classes: "+some(names(alive)), folderOfClasses
	}
}

func add(to []*node, n *node) []*node {
	if n == nil {
		return to
	}
	return append(to, n)
}

// checkSplits finds the folders within splits that hold the classes.
func (a *arrangement) checkSplits() {
	classes := map[string]bool{}
	for _, of := range [][]*node{a.train, a.test} {
		if len(of) == 0 {
			continue
		}
		n := of[0].inside(classes)
		if inner := n.splits(); inner != nil && inner.train != nil && inner.test != nil && inner.train.deep() {
			a.trouble, a.hint = "splits within "+n.path, "name "+n.path
			return
		}
		of[0] = n
		for _, k := range n.alive() {
			classes[canonical(k.name)] = true
		}
	}
	if len(a.train) > 0 && a.train[0].deep() {
		a.checkClasses()
	}
	switch {
	case len(a.train) > 0 && !a.train[0].deep():
		a.trouble, a.hint = "pictures in "+a.train[0].path+" without folders of classes",
			"put them into a folder for each class"
	case len(a.train) == 0 && !a.test[0].deep():
		a.trouble, a.hint = "pictures in "+a.test[0].path+" without folders of classes",
			"put them into a folder for each class"
	case len(a.test) > 0 && !a.test[0].deep():
		a.left, a.test = append(a.left, a.test[0]), nil
	}
}

// inside goes down within a split through folders that hold one folder only, which is no class.
func (n *node) inside(classes map[string]bool) *node {
	for {
		alive := n.alive()
		if len(alive) != 1 || classes[canonical(alive[0].name)] {
			return n
		}
		switch k := alive[0]; {
		case n.direct == 0 && k.direct == 0 && k.deep(): // seg_train/seg_train/CLASS
			n = k
		case len(classes) > 0 && !k.deep() && noClass(k.name): // val/images/NAME.jpg
			return k
		default:
			return n
		}
	}
}

// isClassFirst recognises CLASS/train and CLASS/test in each folder.
func (a *arrangement) isClassFirst() bool {
	alive := a.top.alive()
	var found, without []*node
	for _, k := range alive {
		l := k.splits()
		if l == nil || l.ambiguous != "" || !slices.ContainsFunc(add(add(nil, l.train), l.test), func(n *node) bool {
			return n.direct > 0
		}) {
			without = append(without, k)
			continue
		}
		found = append(found, k)
		a.left = append(a.left, l.left...)
		a.train, a.test = add(a.train, l.train), add(a.test, l.test)
	}
	both := len(a.train) > 0 && len(a.test) > 0
	if len(alive) < 2 || len(found) == 0 || len(without) > 0 && !both {
		a.train, a.test, a.left = nil, nil, nil
		return false
	}
	a.classFirst = true
	switch {
	case len(without) > 0:
		a.trouble, a.hint = fmt.Sprintf("folders of splits in %s, but not in %s", some(names(found)),
			some(names(without))), "give all classes the same folders"
	case len(a.train) > 0 && len(a.train) < len(alive):
		a.trouble, a.hint = "a class without a folder of training pictures", "give all classes the same folders"
	}
	return true
}

// inner lists folders below, to a depth, whose folders are splits for training and testing, or one
// for training that holds classes.
func (n *node) inner(depth int) (all []string) {
	for _, k := range n.alive() {
		if l := k.splits(); l != nil && l.ambiguous == "" && l.train != nil && (l.test != nil || l.train.deep()) {
			all = append(all, k.path)
		} else if depth > 1 {
			all = append(all, k.inner(depth-1)...)
		}
	}
	return all
}

// mark writes split and class to the folders below root. For labels from files, byName, only the
// splits count.
func (a *arrangement) mark(root *node, byName bool) {
	const stray = "in no folder of a class"
	root.spread("", "", stray)
	for split, of := range map[string][]*node{trainSplit: a.train, testSplit: a.test} {
		for _, n := range of {
			if a.classFirst {
				n.spread(split, path.Base(path.Dir(n.path)), "")
				continue
			}
			for _, k := range n.kids {
				k.spread(split, k.name, "")
			}
		}
	}
	if byName {
		if !a.classFirst {
			root.spread("", "", "")
		}
		if l := a.level; l != nil && l.ambiguous == "" {
			for split, n := range map[string]*node{trainSplit: l.train, testSplit: l.test} {
				if n != nil {
					n.spread(split, "", "")
				}
			}
			for _, n := range l.left {
				n.spread("", "", "of "+n.path)
			}
		}
		return
	}
	for _, n := range a.left {
		n.spread("", "", "of "+n.path)
	}
}

func (n *node) spread(split, class, left string) {
	n.split, n.class, n.left = split, class, left
	for _, k := range n.kids {
		k.spread(split, class, left)
	}
}

// String says where the pictures of each split are.
func (a *arrangement) String() string {
	var parts []string
	for _, p := range []struct {
		name string
		of   []*node
	}{{"training", a.train}, {"test", a.test}} {
		switch {
		case len(p.of) == 0:
		case a.classFirst:
			parts = append(parts, p.name+" "+path.Join(a.top.path, "CLASS", path.Base(p.of[0].path)))
		default:
			parts = append(parts, p.name+" "+path.Join(p.of[0].path, "CLASS"))
		}
	}
	return strings.Join(parts, ", ")
}
