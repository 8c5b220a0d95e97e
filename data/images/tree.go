package images

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// entry is a file below a root, or a folder, which may be empty.
type entry struct {
	name string // path below the root, with slashes
	at   location
	dir  bool
	link string // path below the root that a link of an archive leads to
}

// tree is a list of the files of a folder or of archives. All layouts are found from it, so that a
// folder and an archive of it are the same set.
type tree struct {
	path     string
	kind     string    // folder, tar or zip
	archives *archives // nil of a folder
	several  bool      // several archives, which have the name of each before those of its members
	store    store
	entries  []entry
	notes    []string
}

// maxDepth limits the depth of folders, so that links in a circle end.
const maxDepth = 12

// folderTree lists the files below a folder. It follows links.
func folderTree(root string) (*tree, error) {
	t := &tree{path: root, kind: "folder", store: folderStore(root)}
	if err := t.walk("", maxDepth); err != nil {
		return nil, err
	}
	t.tidy()
	return t, nil
}

func (t *tree) walk(rel string, depth int) error {
	if depth == 0 {
		return &FormatError{Path: filepath.Join(t.path, rel), Got: fmt.Sprintf("folders %d deep", maxDepth),
			Want: "pictures in a class folder", Hint: "a link may lead in a circle"}
	}
	entries, err := os.ReadDir(filepath.Join(t.path, filepath.FromSlash(rel)))
	if err != nil {
		return fmt.Errorf("images: %w", err)
	}
	for _, e := range entries {
		name := path.Join(rel, e.Name())
		dir := e.IsDir() || e.Type()&os.ModeSymlink != 0 && isDir(filepath.Join(t.path, filepath.FromSlash(name)))
		t.entries = append(t.entries, entry{name: name, at: location{file: -1}, dir: dir})
		if dir && !isSystem(e.Name()) {
			if err := t.walk(name, depth-1); err != nil {
				return err
			}
		}
	}
	return nil
}

// archiveTree lists the members of tars and zips. Those of several have the name of their archive
// before their own.
func archiveTree(root string, files []string) (t *tree, err error) {
	t = &tree{path: root, kind: "tar"}
	if t.several = len(files) > 1; t.several {
		_, _, left := Splits("", files)
		for _, f := range left {
			t.notes = append(t.notes, "ignored in favour of the shards of val: "+f)
		}
		files = slices.DeleteFunc(slices.Clone(files), func(f string) bool { return slices.Contains(left, f) })
	}
	a, err := newArchives(files)
	if err != nil {
		return nil, err
	}
	t.archives, t.store = a, a
	for i := range files {
		prefix := ""
		if t.several {
			prefix = uniqueName(files, i) + "/"
		}
		if err = t.members(i, prefix); err != nil {
			break
		}
	}
	if err != nil {
		_ = a.Close() // return the first error
		return nil, err
	}
	t.tidy()
	return t, nil
}

// uniqueName is the name of a file without its folder, unless another has the same.
func uniqueName(files []string, i int) string {
	base := filepath.Base(files[i])
	for k, f := range files {
		if k != i && filepath.Base(f) == base {
			return strings.TrimLeft(filepath.ToSlash(filepath.Clean(files[i])), "/")
		}
	}
	return base
}

// members lists an archive.
func (t *tree) members(i int, prefix string) error {
	add := func(name string, e entry) {
		e.name = prefix + strings.TrimLeft(path.Clean(name), "/")
		if e.at.file = int32(i); e.link != "" {
			e.link = prefix + e.link
		}
		t.entries = append(t.entries, e)
	}
	return t.archives.use(i, func(f *os.File) error {
		head := make([]byte, 4)
		if n, _ := f.ReadAt(head, 0); n == len(head) && strings.HasPrefix(string(head), "PK") {
			t.kind = "zip"
			return t.archives.listZip(i, f, add)
		}
		return t.archives.scan(i, func(_ *os.File, m member) error {
			add(m.name, entry{at: location{offset: m.offset, size: m.size}, dir: m.dir, link: m.link})
			return nil
		})
	})
}

// tidy resolves links within archives, and leaves out files of systems and names that occur twice.
func (t *tree) tidy() {
	last := make(map[string]int, len(t.entries))
	for i, e := range t.entries {
		last[e.name] = i
	}
	again, hidden, lost := 0, 0, 0
	kept := t.entries[:0:0]
	for i, e := range t.entries {
		for hops := 0; e.link != "" && hops < maxDepth; hops++ {
			at, ok := last[e.link]
			if !ok || t.entries[at].dir {
				break
			}
			e.at, e.link = t.entries[at].at, t.entries[at].link
		}
		base := path.Base(e.name)
		var parts []string
		if strings.HasPrefix(e.name, ".") || strings.Contains(e.name, "/.") || strings.Contains(e.name, "__MACOSX") {
			parts = strings.Split(path.Dir(e.name), "/")
		}
		switch at := slices.IndexFunc(parts, isSystem); {
		case at > 0: // the folder around it is one in an archive, too
			kept = append(kept, entry{name: path.Join(parts[:at]...), dir: true})
		case at == 0:
		case isSystem(base):
			if !e.dir && isPicture(base) && !strings.HasPrefix(base, "._") {
				hidden++
			}
		case e.link != "":
			lost++
		case last[e.name] != i:
			if !e.dir {
				again++
			}
		default:
			kept = append(kept, e)
		}
	}
	slices.SortFunc(kept, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	t.entries = kept
	for _, n := range []struct {
		n    int
		text string
	}{{hidden, "hidden pictures, whose names begin with a dot, were left out"},
		{lost, "links to nothing in the archive were left out"},
		{again, "members were replaced by later ones of the same name"}} {
		if n.n > 0 {
			t.notes = append(t.notes, fmt.Sprintf("%d %s", n.n, n.text))
		}
	}
}

// isSystem reports files and folders that systems make: .DS_Store, ._name.jpg and __MACOSX in
// archives made on a Mac.
func isSystem(base string) bool {
	return base != "." && (strings.HasPrefix(base, ".") || base == "__MACOSX")
}

// pictures counts the pictures.
func (t *tree) pictures() (n int) {
	for _, e := range t.entries {
		if !e.dir && isPicture(e.name) {
			n++
		}
	}
	return n
}

func (t *tree) read(e entry, most int64) ([]byte, error) {
	where := filepath.Join(t.path, filepath.FromSlash(e.name))
	if t.archives != nil {
		where = t.archives.paths[e.at.file]
	}
	if e.at.size > most {
		return nil, &FormatError{Path: where, Got: fmt.Sprintf("member %s of %d bytes", e.name, e.at.size),
			Want: fmt.Sprintf("at most %d for labels", most)}
	}
	text, err := t.store.read(nil, &picture{name: e.name, at: e.at})
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("%d bytes, want at most %d for labels", len(text), most)
	}
	if err != nil {
		return nil, fmt.Errorf("images: reading %s of %s: %w", e.name, t.path, err)
	}
	return text, nil
}

// where names the file that holds an entry, for errors.
func (t *tree) where(e entry) string {
	if t.archives != nil {
		return t.archives.paths[e.at.file]
	}
	return t.path
}

// maxDeflate is the largest factor by which deflate compresses.
const maxDeflate = 1032

// listZip visits the members of a zip.
func (a *archives) listZip(i int, f *os.File, add func(name string, e entry)) error {
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("images: %w", err)
	}
	where := a.paths[i]
	z, err := zip.NewReader(archiveReader{a, i}, info.Size())
	if err != nil {
		return &FormatError{Path: where, Got: "a damaged zip: " + err.Error(), Want: "an intact one",
			Hint: "it may be cut off; fetch it again", Err: err}
	}
	a.zips[int32(i)] = z
	for k, m := range z.File {
		name := m.Name
		if !strings.Contains(name, "/") {
			name = strings.ReplaceAll(name, `\`, "/") // some programs for Windows write it
		}
		packed, size := m.CompressedSize64, m.UncompressedSize64
		wrong := ""
		switch {
		case m.Flags&1 != 0:
			wrong = "is encrypted"
		case m.Method != zip.Store && m.Method != zip.Deflate:
			wrong = fmt.Sprintf("is compressed by method %d", m.Method)
		case packed > uint64(info.Size()) || m.Method == zip.Store && size != packed || size > maxDeflate*packed+64:
			wrong = fmt.Sprintf("claims %d bytes of %d", size, packed)
		}
		if wrong != "" {
			return &FormatError{Path: where, Got: "member " + m.Name + ", which " + wrong,
				Want: "members that are stored or deflated", Hint: "unpack it, and name the folder"}
		}
		e := entry{at: location{offset: int64(k), size: int64(size)}, dir: strings.HasSuffix(name, "/")}
		switch mode := m.Mode(); {
		case mode&fs.ModeSymlink != 0:
			if size > maxLinkName {
				continue
			}
			to, err := readZipped(nil, m)
			if err != nil {
				return &FormatError{Path: where, Got: "link " + m.Name + ": " + err.Error(), Want: "an intact zip",
					Err: err}
			}
			e.link = linked(name, string(to))
		case !e.dir && !mode.IsRegular():
			e.link = noLink
		}
		add(name, e)
	}
	return nil
}

const (
	maxLinkName = 4096
	noLink      = "/" // the link of a device or of another member without content: it leads nowhere
)

// linked returns the member that a symbolic link leads to.
func linked(from, to string) string {
	if path.IsAbs(to) {
		return noLink
	}
	return path.Join(path.Dir(path.Clean(from)), to)
}

// archiveReader reads an archive that is opened when it is needed.
type archiveReader struct {
	*archives
	i int
}

func (r archiveReader) ReadAt(b []byte, at int64) (n int, err error) {
	err = r.use(r.i, func(f *os.File) error {
		n, err = f.ReadAt(b, at)
		return err
	})
	return n, err
}

// readZipped reads a member of a zip and compares its checksum.
func readZipped(dst []byte, m *zip.File) ([]byte, error) {
	r, err := m.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close() // read only: an error loses no data
	dst = grow(dst, int(m.UncompressedSize64))
	if _, err := io.ReadFull(r, dst); err != nil {
		return nil, fmt.Errorf("damaged: %w", err)
	}
	if n, err := r.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		return nil, errors.Join(fmt.Errorf("damaged: the zip says %d bytes", len(dst)), err)
	}
	return dst, nil
}
