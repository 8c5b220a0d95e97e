package fspda_test

import (
	"go/scanner"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// retiredNames are identifiers that a package, with all packages below it, gave up for a standard
// term. Each is an ordinary word, so that only its use as an identifier is refused.
var retiredNames = map[string][]string{}

// textFiles are the kinds of files that people read.
var textFiles = []string{".cpp", ".cu", ".cuh", ".css", ".go", ".h", ".html", ".js", ".md", ".mjs", ".py", ".service",
	".sh", ".tmpl", ".txt", ".yaml", ".yml"}

// historic are folders that keep what was written at its time.
var historic = []string{"bench/results", "runs"}

func TestRetiredNames(t *testing.T) {
	for _, file := range readableFiles(t) {
		if path.Ext(file) != ".go" {
			continue
		}
		var retired []string
		for folder, names := range retiredNames {
			if strings.HasPrefix(file, folder+"/") {
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
