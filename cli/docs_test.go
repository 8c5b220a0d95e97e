//go:build !windows

package cli

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"fspda/cli/command"
	"fspda/cli/setup"
	"fspda/docs"
)

// The manual is listed, printed and served, and its links are valid.
func TestDocs(t *testing.T) {
	_, stdout, _ := call(t, "docs")
	for _, p := range docs.Pages() {
		if !strings.Contains(stdout, p.Name) || p.Title == "" {
			t.Errorf("the list lacks %s", p.Name)
		}
	}
	if _, stdout, _ := call(t, "docs", "training.md"); !strings.HasPrefix(stdout, "# Training") {
		t.Errorf("%.80s", stdout)
	}
	if status, _, stderr := call(t, "docs", "trainng"); status != command.ExitBadInput ||
		!strings.Contains(stderr, "did you mean training?") {
		t.Errorf("exit status %d, %s", status, stderr)
	}
	ctx, stop := context.WithCancel(context.Background())
	var out output
	status := make(chan int)
	go func() { status <- Run(ctx, []string{"docs", "--listen", ":0"}, &out, io.Discard) }()
	url := out.find(t, `(http://\S+)`)
	todo, seen := []string{""}, map[string]bool{}
	for len(todo) > 0 {
		path := todo[0]
		if todo = todo[1:]; seen[path] {
			continue
		}
		seen[path] = true
		r, err := http.Get(url + path)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(r.Body)
		r.Body.Close()
		if r.StatusCode != http.StatusOK {
			t.Errorf("%s: status %d", path, r.StatusCode)
		}
		for _, m := range regexp.MustCompile(`(?:href|src)="([^"#]+)`).FindAllStringSubmatch(string(text), -1) {
			if !strings.Contains(m[1], "://") && !strings.HasPrefix(m[1], "../") &&
				strings.HasPrefix(r.Header.Get("Content-Type"), "text/html") {
				todo = append(todo, m[1])
			}
		}
	}
	if len(seen) < len(docs.Pages())+5 {
		t.Errorf("links led to %d files", len(seen))
	}
	stop()
	if s := <-status; s != 0 {
		t.Errorf("exit status %d", s)
	}
}

// The messages of the troubleshooting page are those of the program.
func TestTroubleshooting(t *testing.T) {
	var page string
	for _, p := range docs.Pages() {
		if p.Name == "troubleshooting" {
			page = p.Text
		}
	}
	var listed []*regexp.Regexp
	for line := range strings.Lines(page) {
		row, _ := strings.CutPrefix(line, "| ")
		symptom, _, isRow := strings.Cut(row, " | ")
		if !isRow {
			continue
		}
		for _, m := range regexp.MustCompile("`([^`]*)`").FindAllStringSubmatch(symptom, -1) {
			listed = append(listed, regexp.MustCompile(strings.ReplaceAll(regexp.QuoteMeta(m[1]), "…", ".*")))
		}
	}
	pieces := filepath.Join(t.TempDir(), "pieces.txt")
	if err := os.WriteFile(pieces, []byte("0 1\n2 3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, flags := range [][]string{{"--gamma", "1.2"}, {"--eta", "0.6"}, {"--graph", "er(0.05)"}, {"--batch", "500"},
		{"--graph", "file(" + pieces + ")", "--agents", "4"}} {
		status, _, stderr := call(t, append([]string{"train", "--dry-run", "--data-train", "1000"}, flags...)...)
		if status != command.ExitBadInput || !slices.ContainsFunc(listed, func(r *regexp.Regexp) bool {
			return r.MatchString(stderr)
		}) {
			t.Errorf("%v: exit status %d, and the page has no row for %s", flags, status, stderr)
		}
	}
}

func TestMan(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man1")
	if status, _, stderr := call(t, "man", dir); status != 0 {
		t.Fatal(stderr)
	}
	text, err := os.ReadFile(filepath.Join(dir, "fspda-train.1"))
	if err != nil || !strings.Contains(string(text), "density") {
		t.Errorf("%v: %.200s", err, text)
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if status, stdout, _ := call(t, "completion", shell); status != 0 || len(stdout) < 1000 {
			t.Errorf("completion for %s: exit status %d, %d bytes", shell, status, len(stdout))
		}
	}
}

// Output that cannot be written is an error that says what it was and what to do.
func TestManCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := errors.Join(os.WriteFile(file, nil, 0o600),
		os.MkdirAll(filepath.Join(dir, "taken", "fspda-train.1"), 0o700)); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{file: "name a folder that can be made and written to",
		filepath.Join(dir, "taken"): "make room, or name another folder"} {
		status, _, stderr := call(t, "man", path)
		if status != command.ExitBadInput || !strings.Contains(stderr, path+" cannot be written: ") ||
			!strings.Contains(stderr, want) {
			t.Errorf("man %s: exit status %d, %s", path, status, stderr)
		}
	}
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("no /dev/full")
	}
	defer full.Close()
	cmd := exec.Command(os.Args[0], "docs", "start")
	cmd.Env = append(os.Environ(), "FSPDA_TEST_AS_PROGRAM=1")
	var stderr strings.Builder
	cmd.Stdout, cmd.Stderr = full, &stderr
	if err := cmd.Run(); command.ExitStatus(err) != command.ExitDiskFull ||
		!strings.Contains(stderr.String(), "the standard output cannot be written: ") {
		t.Errorf("docs to a full disk: %v, %s", err, stderr.String())
	}
}

// commandBlock finds the blocks of shell commands of a page.
var commandBlock = regexp.MustCompile("(?s)```sh\n(.*?)```")

// Every command of README and manual exists, with its flags and keys, and the cheap ones run, in
// the order of their page.
func TestCommandsOfDocs(t *testing.T) {
	pages := map[string]string{}
	for _, p := range docs.Pages() {
		pages[p.Name] = p.Text
	}
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	pages["README"] = string(readme)
	t.Chdir(t.TempDir())
	checked := 0
	for name, text := range pages {
		for _, m := range commandBlock.FindAllStringSubmatch(text, -1) {
			for line := range strings.Lines(strings.ReplaceAll(m[1], "\\\n", " ")) {
				if args, ok := fspdaCommand(line); ok {
					checked++
					checkCommand(t, name, line, args)
				}
			}
		}
	}
	if checked < 25 {
		t.Errorf("only %d commands were found", checked)
	}
}

// fspdaCommand returns the arguments of a line that runs the program, without its comment.
func fspdaCommand(line string) (args []string, ok bool) {
	line, _, _ = strings.Cut(line, " #")
	line, _, _ = strings.Cut(line, " > ")
	line = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(line), "&"))
	line, ok = strings.CutPrefix(strings.Replace(line, "go run ./cmd/fspda", "fspda", 1), "fspda ")
	if !ok {
		return nil, false
	}
	for _, m := range regexp.MustCompile(`'([^']*)'|(\S+)`).FindAllStringSubmatch(line, -1) {
		args = append(args, m[1]+m[2])
	}
	return args, true
}

// checkCommand parses a command like the program, and runs it if that is cheap.
func checkCommand(t *testing.T, page, line string, args []string) {
	t.Helper()
	root := newRoot(io.Discard, io.Discard)
	root.InitDefaultCompletionCmd()
	cmd, rest, err := root.Find(args)
	if err != nil || cmd == root {
		t.Errorf("%s: %q: %v", page, line, err)
		return
	}
	cmd.InitDefaultHelpFlag()
	if err := cmd.ParseFlags(slices.DeleteFunc(slices.Clone(rest),
		func(a string) bool { return a == "--help" })); err != nil {
		t.Errorf("%s: %q: %v", page, line, err)
		return
	}
	if cmd.Args != nil && !slices.Contains(rest, "--help") {
		if err := cmd.Args(cmd, cmd.Flags().Args()); err != nil {
			t.Errorf("%s: %q: %v", page, line, err)
		}
	}
	cheap := map[string]bool{"docs": true, "completion": true, "man": true, "runs": true}
	if cheap[args[0]] && !slices.Contains(args, "--listen") && !slices.Contains(args, "prune") ||
		slices.Contains(args, "--help") {
		if status, _, stderr := call(t, args...); status != 0 {
			t.Errorf("%s: %q: exit status %d, %s", page, line, status, stderr)
		}
	}
	if args[0] == "train" && !slices.Contains(args, "-c") && !slices.Contains(args, "--help") {
		checkConfig(t, page, line, rest)
	}
}

// checkConfig checks the configuration that the flags of fspda train describe.
func checkConfig(t *testing.T, page, line string, args []string) {
	t.Helper()
	cmd, _, err := newRoot(io.Discard, io.Discard).Find([]string{"train"})
	if err == nil {
		err = cmd.ParseFlags(args)
	}
	if err != nil {
		t.Errorf("%s: %q: %v", page, line, err)
		return
	}
	c, err := setup.ReadConfig("", "", cmd.Flags())
	if err == nil {
		err = c.Check()
	}
	if err != nil {
		t.Errorf("%s: %q: %v", page, line, err)
	}
}
