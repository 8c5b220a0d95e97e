package web

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// Every file that the page references exists, and nothing is loaded from other sites.
func TestPageIsComplete(t *testing.T) {
	srv := newServer(t, Options{Dir: t.TempDir()})
	status, page := get(t, srv.URL)
	if status != http.StatusOK {
		t.Fatal(status)
	}
	named := regexp.MustCompile(`(?:src|href)="(/assets/[^"]+)"`).FindAllStringSubmatch(page, -1)
	if len(named) < 5 {
		t.Fatalf("the page references %d files, want at least 5", len(named))
	}
	todo, size := []string{}, len(page)
	for _, m := range named {
		todo = append(todo, m[1])
	}
	seen := map[string]bool{}
	for len(todo) > 0 {
		path := todo[0]
		todo = todo[1:]
		if seen[path] {
			continue
		}
		seen[path] = true
		status, text := get(t, srv.URL+path)
		if status != http.StatusOK {
			t.Errorf("%s: status %d", path, status)
		}
		size += len(text)
		for _, m := range regexp.MustCompile(`from "\./([^"]+)"`).FindAllStringSubmatch(text, -1) {
			todo = append(todo, "/assets/"+m[1])
		}
		for _, url := range regexp.MustCompile(`https?://[^"' )]+`).FindAllString(text, -1) {
			if !strings.HasPrefix(url, "http://www.w3.org/") && !strings.Contains(url, "github.com/leeoniya/uPlot") {
				t.Errorf("%s contains the URL %s", path, url)
			}
		}
	}
	if size > 200_000 {
		t.Errorf("the page has %d bytes, want at most 200000", size)
	}
}

// A browser with the current version of a file gets 304.
func TestAssetTags(t *testing.T) {
	srv := newServer(t, Options{Dir: t.TempDir()})
	r, err := http.Get(srv.URL + "/assets/page.js")
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	again, _ := http.NewRequest(http.MethodGet, srv.URL+"/assets/page.js", nil)
	again.Header.Set("If-None-Match", r.Header.Get("ETag"))
	if r, err = http.DefaultClient.Do(again); err != nil {
		t.Fatal(err)
	}
	if r.Body.Close(); r.StatusCode != http.StatusNotModified {
		t.Errorf("status %d, want 304", r.StatusCode)
	}
	if r.Header.Get("Content-Security-Policy") == "" {
		t.Error("no Content-Security-Policy header")
	}
}

// The vendored chart library has the hashes stated in its README.
func TestVendored(t *testing.T) {
	readme, err := static.ReadFile("static/uplot/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"uPlot.iife.min.js", "uPlot.min.css"} {
		text, err := static.ReadFile("static/uplot/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("%x  %s", sha256.Sum256(text), name); !strings.Contains(string(readme), want) {
			t.Errorf("%s does not match its hash in README.md: %s", name, want)
		}
	}
	if _, err := static.ReadFile("static/uplot/LICENSE"); err != nil {
		t.Error(err)
	}
}

func TestThemes(t *testing.T) {
	css := themesCSS()
	for _, tone := range tones {
		if strings.Count(css, "--"+tone.name+":"+hex(tone.dark)) != 2 && tone.light != tone.dark {
			t.Errorf("%s is not declared twice for dark themes", tone.name)
		}
	}
}
