package fspda_test

import (
	"go/scanner"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// coinedWords are words that earlier versions of this code used in a sense of their own. They may
// not return in code, comments, messages or documentation; docs/glossary.md has the terms used
// instead.
var coinedWords = []string{
	"berth", "berths", "camera", "crew", "crews", "desk", "fleet", "fleets", "fallin", "farewell",
	"knock", "knocks", "leash", "march", "marches", "observatory", "owed", "sail", "sails", "signet",
	"signets", "standin", "standins", "whoever",
}

// retiredNames are identifiers that a package, with all packages below it, gave up for a standard
// term. Each is an ordinary word, so that only its use as an identifier is refused.
var retiredNames = map[string][]string{
	"": {"AgentSight", "fallIn", "Fate", "giveBack", "hearDiverged", "homed", "Lawful", "letGo", "lookBack", "Rooms",
		"settleIn", "Sight", "standIn", "Weather"},
	"cli/": {"apart", "dashboard", "manners", "screen"},
	"cpu/": {"alone", "coded", "lend", "room", "rooms", "slide", "slider", "spare", "summer"},
	"cuda/": {"Bare", "company", "formation", "gates", "hazard", "imaginary", "joint", "marchable", "marcher", "owner",
		"passage", "sheet", "walks", "wave"},
	"data/":  {"lend", "place", "room", "spare"},
	"dist/":  {"Door", "Hear", "letter", "life", "Say", "seal", "Switchboard", "Talk", "way"},
	"model/": {"begun", "placement", "recipe", "room"},
	"train/": {"Borrow", "Eager", "eager", "Edged", "lent", "Member", "member", "people", "place", "Room", "room",
		"spare", "Turns", "Watch"},
	"web/": {"draft", "guest", "look", "shoot", "welcome"},
}

// textFiles are the kinds of files that people read.
var textFiles = []string{".cpp", ".cu", ".cuh", ".css", ".go", ".h", ".html", ".js", ".md", ".mjs", ".py", ".service",
	".sh", ".tmpl", ".txt", ".yaml", ".yml"}

// historic are folders that keep what was written at its time.
var historic = []string{"bench/results", "runs"}

func TestCoinedWords(t *testing.T) {
	word := regexp.MustCompile(`(?i)(^|[^a-z-])(` + strings.Join(coinedWords, "|") + `)([^a-z]|$)`)
	for _, file := range readableFiles(t) {
		if file == "words_test.go" {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for n, line := range strings.Split(string(text), "\n") {
			if strings.Contains(line, `json:"desk"`) { // a key of checkpoints
				continue
			}
			if found := word.FindStringSubmatch(splitCamelCase(line)); found != nil {
				t.Errorf("%s:%d: the word %q has a standard term: see docs/glossary.md", file, n+1, found[2])
			}
		}
	}
}

func TestRetiredNames(t *testing.T) {
	for _, file := range readableFiles(t) {
		if path.Ext(file) != ".go" {
			continue
		}
		var retired []string
		for folder, names := range retiredNames {
			if strings.HasPrefix(file, folder) {
				retired = append(retired, names...)
			}
		}
		for _, name := range identifiers(t, file) {
			if slices.Contains(retired, name) {
				t.Errorf("%s: the identifier %s was given up for a standard term: see docs/glossary.md", file, name)
			}
		}
	}
}

// readableFiles lists the text files of the project, with slashes, from its root.
func readableFiles(t *testing.T) (files []string) {
	t.Helper()
	err := filepath.WalkDir(".", func(name string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if d.IsDir() {
			hidden := strings.HasPrefix(d.Name(), ".") && name != "."
			if hidden || d.Name() == "uplot" || slices.Contains(historic, name) {
				return filepath.SkipDir
			}
			return nil
		}
		if slices.Contains(textFiles, path.Ext(name)) || name == "Makefile" {
			files = append(files, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// identifiers returns the distinct identifiers of a Go file.
func identifiers(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var s scanner.Scanner
	s.Init(token.NewFileSet().AddFile(file, -1, len(text)), text, nil, 0)
	seen := map[string]bool{}
	var names []string
	for {
		_, kind, name := s.Scan()
		if kind == token.EOF {
			return names
		}
		if kind == token.IDENT && !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
}

// splitCamelCase puts a space between a lower-case letter and an upper-case one.
func splitCamelCase(line string) string {
	var b strings.Builder
	previous := ' '
	for _, r := range line {
		if unicode.IsUpper(r) && unicode.IsLower(previous) {
			b.WriteByte(' ')
		}
		b.WriteRune(r)
		previous = r
	}
	return b.String()
}
