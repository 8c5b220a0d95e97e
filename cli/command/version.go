package command

import (
	"runtime"
	"runtime/debug"
	"strings"
)

// release is the version of a tagged build; a build from a checkout adds its commit.
const release = "0.1.0"

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
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			settings[s.Key] = s.Value
		}
	}
	b.Commit, b.Time, b.Modified = settings["vcs.revision"], settings["vcs.time"], settings["vcs.modified"] == "true"
	if len(b.Commit) >= 12 {
		b.Version += "+" + b.Commit[:12]
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

// String is the description as a line.
func (b Build) String() string {
	return "fspda " + b.Version + " " + b.System + ", " + b.Go + ": " + strings.Join(b.Features, ", ") + "\n"
}

// Version returns the version of this program.
func Version() string { return ReadBuild().Version }
