//go:build !windows

package cli

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"fspda/web"
)

// bombs are files of a run folder that take much memory to parse: nested deeply, repeated by
// anchors, or long.
func bombs() map[string][2]string {
	aliases := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := range 9 {
		was, now := string(rune('0'+i)), string(rune('1'+i))
		aliases += "a" + now + ": &a" + now + " [" + strings.Repeat("*a"+was+", ", 9) + "*a" + was + "]\n"
	}
	return map[string][2]string{
		"brackets": {"config.yaml", "a: " + strings.Repeat("[", 200_000) + strings.Repeat("]", 200_000)},
		"maps":     {"config.yaml", "a: " + strings.Repeat("{a: ", 15_000)},
		"dashes":   {"config.yaml", strings.Repeat("- ", 32_000) + "x"},
		"aliases":  {"config.yaml", aliases},
		"summary":  {"summary.json", strings.Repeat("[", 400_000)},
		"rows":     {"metrics.jsonl", `{"iteration": ` + strings.Repeat("[", 400_000)},
	}
}

// A hostile file in a run folder costs the commands that read runs no more memory than a good one.
func TestBombs(t *testing.T) {
	t.Chdir(t.TempDir())
	if status, _, stderr := call(t, quick("--quiet", "--out", "runs/good")...); status != 0 {
		t.Fatal(stderr)
	}
	for name, b := range bombs() {
		dir := filepath.Join("runs", name)
		if err := os.CopyFS(dir, os.DirFS("runs/good")); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, b[0]), []byte(b[1]), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := web.NewServer(web.Options{Dir: "runs"})
		if err != nil {
			t.Fatal(err)
		}
		for what, do := range map[string]func(){
			"runs":    func() { call(t, "runs") },
			"compare": func() { call(t, "compare", "runs/good", dir) },
			"plot":    func() { call(t, "plot", dir) },
			"report":  func() { call(t, "report", dir) },
			"web": func() {
				for _, path := range []string{"/api/runs", "/api/run?run=" + name} {
					s.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "http://localhost"+path,
						nil))
				}
			},
		} {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			do()
			runtime.ReadMemStats(&after)
			if got := (after.TotalAlloc - before.TotalAlloc) >> 20; got > 64 {
				t.Errorf("%s with a bomb of %s allocates %d MB", what, name, got)
			}
		}
		_ = s.Close()
		_ = os.RemoveAll(dir)
	}
}
