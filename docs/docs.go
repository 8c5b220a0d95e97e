package docs

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"regexp"
	"strings"
	"sync"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
)

//go:generate go test -count 1 -run TestReferenceIsCurrent fspda/cli -update
//go:generate go test -count 1 -run TestStabilityPictureIsCurrent fspda/cli/docscmd -update

//go:embed *.md images
var files embed.FS

// order is the reading order of the pages. Pages that it does not name follow.
var order = []string{"start", "concepts", "training", "training-reference", "methods", "data", "files", "networks",
	"step-sizes", "from-pytorch", "departures", "authors-scripts", "experiments", "results", "results-figure-1",
	"results-figure-2", "results-figures-4-to-9", "results-methods", "results-theory", "results-other-papers",
	"results-mnist", "results-resnet-50", "results-language", "results-faults", "results-memory", "results-bf16",
	"results-full-length", "library", "add-an-algorithm", "add-a-network", "add-a-dataset", "links", "many-machines",
	"gpus", "performance", "troubleshooting", "public-reports", "reference", "glossary", "internals", "protocol"}

// Page is a page of the manual.
type Page struct {
	Name  string // name of its file, without .md
	Title string // its first heading
	Text  string // Markdown
}

// Pages returns the pages in the order in which they are to be read. Callers do not change them.
var Pages = sync.OnceValue(pages)

func pages() []Page {
	names, err := fs.Glob(files, "*.md")
	if err != nil {
		panic(err) // the pattern is right
	}
	var pages []Page
	for _, want := range append(order, "") {
		for _, file := range names {
			name := strings.TrimSuffix(file, ".md")
			if name != want && (want != "" || strings.Contains(" "+strings.Join(order, " ")+" ", " "+name+" ")) {
				continue
			}
			raw, err := files.ReadFile(file)
			if err != nil {
				panic(err) // it is in the program
			}
			text := string(raw)
			first, _, _ := strings.Cut(text, "\n")
			pages = append(pages, Page{name, strings.TrimPrefix(first, "# "), text})
		}
	}
	return pages
}

var markdown = goldmark.New(goldmark.WithExtensions(extension.GFM),
	goldmark.WithParserOptions(parser.WithAutoHeadingID()))

var toPage = regexp.MustCompile(`href="([a-z0-9-]+)\.md(#[^"]*)?"`)

//go:embed page.html.tmpl
var frameText string

var frame = template.Must(template.New("page").Parse(frameText))

// Handler shows the manual to browsers.
func Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/"+Pages()[0].Name, http.StatusFound)
	})
	mux.HandleFunc("GET /{name}", page)
	mux.HandleFunc("GET /images/{name}", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFileFS(w, r, files, path.Join("images", r.PathValue("name")))
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy",
			"default-src 'none'; style-src 'unsafe-inline'; img-src 'self'; base-uri 'none'; frame-ancestors 'none'")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		mux.ServeHTTP(w, r)
	})
}

// page answers with one page.
func page(w http.ResponseWriter, r *http.Request) {
	all := Pages()
	for _, p := range all {
		if p.Name != strings.TrimSuffix(r.PathValue("name"), ".md") {
			continue
		}
		var body, whole bytes.Buffer
		err := markdown.Convert([]byte(p.Text), &body)
		if err == nil {
			err = frame.Execute(&whole, map[string]any{"Name": p.Name, "Title": p.Title, "Pages": all,
				"Body": template.HTML(toPage.ReplaceAllString(body.String(), `href="$1$2"`))})
		}
		if err != nil {
			http.Error(w, fmt.Sprintf("the page %s cannot be shown: %v", p.Name, err), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(whole.Bytes()) // a reader that is gone needs no answer
		return
	}
	http.NotFound(w, r)
}
