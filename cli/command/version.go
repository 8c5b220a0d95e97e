package command

import (
	_ "embed"
	"encoding/hex"
	"runtime"
	"runtime/debug"
	"strings"
)

// release is the version of a tagged build; a build adds its commit, or says that it does not know
// it.
const release = "0.2.0"

// archived is the commit of a source archive, into which git archive writes it; else a placeholder.
//
//go:embed commit.txt
var archived string

// Build describes this program.
type Build struct {
	Version  string   `json:"version"`
	Commit   string   `json:"commit,omitempty"`
	Modified bool     `json:"modified"` // the checkout had changes
	Time     string   `json:"time,omitempty"`
	Go       string   `json:"go"`
	System   string   `json:"system"` // linux/amd64
	Features []string `json:"features"`
}

// ReadBuild returns the description of this program.
func ReadBuild() Build {
	b := Build{Version: release, Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH,
		Features: []string{}}
	settings := map[string]string{}
	module := false // It was built as a module of a version.
	if info, ok := debug.ReadBuildInfo(); ok {
		module = info.Main.Version != "" && info.Main.Version != "(devel)"
		for _, s := range info.Settings {
			settings[s.Key] = s.Value
		}
	}
	b.Commit, b.Time, b.Modified = settings["vcs.revision"], settings["vcs.time"], settings["vcs.modified"] == "true"
	if b.Commit == "" {
		b.Commit = commitOf(archived)
	}
	if len(b.Commit) >= 12 {
		b.Version += "+" + b.Commit[:12]
	} else if !module {
		b.Version += "+unstamped"
	}
	if b.Modified {
		b.Version += ".modified"
	}
	has := func(tag string) bool { return strings.Contains(","+settings["-tags"]+",", ","+tag+",") }
	for _, f := range []struct {
		name string
		ok   bool
	}{{"assembly", (runtime.GOARCH == "amd64" || runtime.GOARCH == "arm64") && !has("noasm") && !has("fspda_noasm")},
		{"gpu", runtime.GOOS == "linux" && !has("static") && !has("nocuda")}, {"static", has("static")}} {
		if f.ok {
			b.Features = append(b.Features, f.name)
		}
	}
	return b
}

// commitOf returns the commit that the file of a source archive names, "" if it names none.
func commitOf(text string) string {
	text = strings.TrimSpace(text)
	if _, err := hex.DecodeString(text); err != nil {
		return ""
	}
	return text
}

// String is the description as a line.
func (b Build) String() string {
	return "fspda " + b.Version + " " + b.System + ", " + b.Go + ": " + strings.Join(b.Features, ", ") + "\n"
}

// Version returns the version of this program.
func Version() string { return ReadBuild().Version }
