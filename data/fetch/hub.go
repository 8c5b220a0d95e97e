package fetch

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// HuggingFace is the address of the server of data sets.
const HuggingFace = "https://huggingface.co"

// Repository is a data set at Hugging Face, or at another server with the same interface.
type Repository struct {
	Base     string // address of the server; "": HuggingFace
	Name     string // OWNER/NAME
	Revision string // a branch, tag or commit; "": main
	Token    string // an account's token, which some sets require; "": none
}

// entry is a file of a repository, as the server lists it. Large files have the SHA-256 of their
// content, small ones the checksum of git.
type entry struct {
	Type string `json:"type"`
	Path string `json:"path"`
	OID  string `json:"oid"`
	Size int64  `json:"size"`
	LFS  *struct {
		OID  string `json:"oid"`
		Size int64  `json:"size"`
	} `json:"lfs"`
}

// maxListing is the largest answer that is read, in bytes.
const maxListing = 64 << 20

// address returns the address of the repository for programs.
func (r Repository) address() string {
	return strings.TrimSuffix(cmp.Or(r.Base, HuggingFace), "/") + "/api/datasets/" + escape(r.Name)
}

// escape writes a path with slashes as a part of an address.
func escape(name string) string {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return strings.Join(parts, "/")
}

var repositoryName = regexp.MustCompile(`^[\w.-]+/[\w.-]+$`)

// Tables returns the Parquet files of the repository below a folder, in the order of their names;
// "" is the whole repository. Their addresses have the commit, so that all are of one state.
func (r Repository) Tables(ctx context.Context, folder string) (s Set, err error) {
	if !repositoryName.MatchString(r.Name) {
		return s, fmt.Errorf("fetch: repository %q: want OWNER/NAME, as in its address", r.Name)
	}
	var about struct {
		SHA string `json:"sha"`
	}
	if _, err := r.ask(ctx, r.address()+"/revision/"+url.PathEscape(cmp.Or(r.Revision, "main")), &about); err != nil {
		return s, err
	}
	if about.SHA == "" {
		return s, fmt.Errorf("fetch: %s names no commit: is this a server as Hugging Face's? give another --url",
			r.address())
	}
	s = Set{Name: r.Name, Commit: about.SHA, token: r.Token, Bases: []string{strings.TrimSuffix(cmp.Or(r.Base,
		HuggingFace), "/") + "/datasets/" + escape(r.Name) + "/resolve/" + url.PathEscape(about.SHA)}}
	others := map[string]int{}
	next := r.address() + "/tree/" + url.PathEscape(about.SHA) + "/" + escape(folder) + "?recursive=true"
	for next != "" {
		var entries []entry
		if next, err = r.ask(ctx, next, &entries); err != nil {
			return s, err
		}
		for _, e := range entries {
			switch {
			case e.Type != "file":
			case path.Ext(e.Path) != ".parquet":
				others[path.Ext(e.Path)]++
			case !filepath.IsLocal(filepath.FromSlash(e.Path)):
				return s, fmt.Errorf("fetch: %s lists the file %q, which does not lie within the repository", r.Name,
					e.Path)
			case e.LFS != nil:
				s.Files = append(s.Files, File{Name: e.Path, Size: e.LFS.Size, SHA256: e.LFS.OID})
			default:
				s.Files = append(s.Files, File{Name: e.Path, Size: e.Size, Git: e.OID})
			}
		}
	}
	if len(s.Files) == 0 {
		return s, r.noTables(folder, others)
	}
	slices.SortFunc(s.Files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return s, nil
}

// noTables says what a repository has in place of Parquet files.
func (r Repository) noTables(folder string, others map[string]int) error {
	var kinds []string
	for _, ext := range slices.Sorted(maps.Keys(others)) {
		kinds = append(kinds, fmt.Sprintf("%d %s", others[ext], cmp.Or(ext, "without ending")))
	}
	where := r.Name
	if folder != "" {
		where += "/" + folder
	}
	return fmt.Errorf("fetch: %s has no Parquet files, but %s: the server converts many sets to Parquet, in the "+
		"revision refs/convert/parquet: give it with --revision, or another folder with --path", where,
		cmp.Or(strings.Join(kinds, ", "), "no files"))
}

// nextPage finds the address of the next part of a list in the header Link.
var nextPage = regexp.MustCompile(`<([^>]+)>;\s*rel="next"`)

// ask reads JSON from an address of the server. It returns the address of the next part; "": there
// is none.
func (r Repository) ask(ctx context.Context, address string, to any) (next string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", fmt.Errorf("fetch: %w", err)
	}
	authorize(req, r.Token)
	res, err := client().Do(req)
	if err != nil {
		return "", fmt.Errorf("fetch: %w", err)
	}
	defer res.Body.Close() // read only: an error loses no data
	switch res.StatusCode {
	case http.StatusOK:
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound:
		return "", fmt.Errorf("fetch: %s: the server answers %s: check the name and the revision; a set that is given "+
			"to registered persons needs that you accept its conditions on its page, and the token of your account in "+
			"the environment variable HF_TOKEN", address, res.Status)
	default:
		return "", &StatusError{URL: address, Status: res.Status}
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, maxListing)).Decode(to); err != nil {
		return "", fmt.Errorf("fetch: %s: the answer is not what Hugging Face's servers send: %w", address, err)
	}
	if m := nextPage.FindStringSubmatch(res.Header.Get("Link")); m != nil {
		u, err := res.Request.URL.Parse(m[1])
		if err != nil || u.Host != res.Request.URL.Host {
			return "", errors.Join(fmt.Errorf("fetch: %s: the list goes on at %q, on another server", address, m[1]),
				err)
		}
		next = u.String()
	}
	return next, nil
}

// authorize adds the token of an account. http.Client leaves it out where the server redirects to
// another domain.
func authorize(req *http.Request, token string) {
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
}
