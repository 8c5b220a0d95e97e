package web

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"embed"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"sync"
	"time"
)

//go:embed static
var static embed.FS

// assetTypes maps file extensions to media types.
var assetTypes = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
	".svg": "image/svg+xml",
}

// asset is a file of the page, with an ETag that is its hash.
type asset struct {
	text []byte
	kind string
	tag  string
}

// assets returns the files of the page by name. All are embedded in the program.
var assets = sync.OnceValue(func() map[string]asset {
	all := map[string]asset{"palette.css": newAsset([]byte(themesCSS()), ".css")}
	err := fs.WalkDir(static, "static", func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || assetTypes[path.Ext(p)] == "" {
			return err
		}
		text, err := static.ReadFile(p)
		all[path.Base(p)] = newAsset(text, path.Ext(p))
		return err
	})
	if err != nil {
		panic(err) // cannot happen: the files are embedded
	}
	return all
})

func newAsset(text []byte, ext string) asset {
	sum := sha256.Sum256(text)
	return asset{text, assetTypes[ext], fmt.Sprintf(`"%x"`, sum[:12])}
}

// asset serves a file of the page, or the page itself. If the browser has its current version, it
// answers 304.
func (s *Server) asset(w http.ResponseWriter, r *http.Request) {
	a, ok := assets()[cmp.Or(r.PathValue("name"), "index.html")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", a.kind)
	h.Set("ETag", a.tag)
	h.Set("Cache-Control", "no-cache") // may be stored, but must be revalidated
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(a.text))
}
