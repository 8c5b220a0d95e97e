package images

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"
)

// A set is the same whatever form of Unicode the names of test folders, tables and their pictures
// have, in a folder, a tar and a zip.
func TestFormsOfUnicode(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	names := []string{"café", "naïve", "Ångström", "한국", "が", "ὥ", "e\u0301\u0323", "plain"}
	forms := []norm.Form{norm.NFC, norm.NFD}
	for n := range 60 {
		r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		classes := names[:2+r.IntN(3)]
		split := []string{"train", "données"}[n%2]
		// tree returns the files of a set, each of whose names has the form that a function says.
		tree := func(of func(name string) string) (files []file) {
			table, dir := "file_name,label\n", of(split)
			for _, part := range []string{split, "test"} {
				for i, c := range classes {
					for k := range 2 {
						name := fmt.Sprintf("%s-%d.png", c, k)
						switch {
						case split == "train":
							folder := c
							if part == "test" {
								folder = of(c)
							}
							files = append(files, file{part + "/" + folder + "/" + norm.NFC.String(name), nil})
						case part == split:
							files = append(files, file{dir + "/" + of(name), nil})
							table += fmt.Sprintf("%s,%d\n", of(split+"/"+name), i%2)
						}
					}
				}
			}
			if split != "train" {
				files = append(files, file{"labels.csv", []byte(table)})
			}
			return files
		}
		want := norm.NFC.String(understood(t, folderOf(t, tree(func(s string) string { return s })...)))
		if strings.HasPrefix(want, "refused") {
			t.Fatalf("%q: %s", classes, want)
		}
		files := tree(func(s string) string { return forms[r.IntN(2)].String(s) })
		for kind, location := range map[string]string{"folder": folderOf(t, files...),
			"tar": written(t, "x.tar", tarOf(t, files...)), "zip": written(t, "x.zip", zipOf(t, files...))} {
			if got := norm.NFC.String(understood(t, location)); sorted(got) != sorted(want) {
				t.Fatalf("%s of %q is\n%s\nwant\n%s", kind, filesOf(files), got, want)
			}
		}
	}
}

// sorted returns the lines of a text in order: the form of a name changes its place.
func sorted(text string) string {
	lines := strings.Split(text, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// Two folders of one name in two forms are two classes, which is said.
func TestNameTwice(t *testing.T) {
	s, err := Open(folderOf(t, file{"train/caf\u00e9/1.png", nil}, file{"train/cafe\u0301/2.png", nil},
		file{"train/dog/3.png", nil}), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if len(s.Classes) != 3 || !slices.ContainsFunc(s.Notes, func(n string) bool {
		return strings.Contains(n, "two forms of Unicode")
	}) {
		t.Errorf("classes %q, notes %q", s.Classes, s.Notes)
	}
}
