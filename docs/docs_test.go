package docs

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
)

// The program of library.md is the example that is run.
func TestLibraryIsTheExample(t *testing.T) {
	text, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, program, ok := strings.Cut(string(text), "// lateGossip")
	page, err := os.ReadFile("library.md")
	if err != nil {
		t.Fatal(err)
	}
	if !ok || !strings.Contains(string(page), strings.TrimSpace(program)) {
		t.Error("library.md does not hold the program of example_test.go")
	}
}

// The manual begins at its start and has all its pages, each once; nothing else is served.
func TestHandler(t *testing.T) {
	names := map[string]bool{}
	pages := Pages()
	for _, p := range pages {
		if names[p.Name] || p.Title == "" || strings.HasPrefix(p.Title, "#") {
			t.Errorf("page %q, title %q", p.Name, p.Title)
		}
		names[p.Name] = true
	}
	if pages[0].Name != "start" || len(pages) < 12 {
		t.Errorf("%d pages, the first of them %s", len(pages), pages[0].Name)
	}
	srv := httptest.NewServer(Handler())
	defer srv.Close()
	for path, want := range map[string]int{"/": 200, "/concepts": 200, "/concepts.md": 200,
		"/images/concept-edge.svg": 200, "/none": 404, "/images/../docs.go": 404, "/docs.go": 404, "/images/": 404} {
		r, err := http.Get(srv.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(r.Body)
		r.Body.Close()
		if r.StatusCode != want {
			t.Errorf("%s: status %d, want %d", path, r.StatusCode, want)
		}
		if path == "/" && !strings.Contains(string(text), `<a href="concepts">concepts</a>`) {
			t.Errorf("no link to the concepts in\n%s", text)
		}
	}
}
