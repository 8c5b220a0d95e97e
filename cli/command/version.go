package command

import "runtime/debug"

// release is the version of a tagged build; a build from a checkout adds its commit.
const release = "0.1.0"

// Version returns the version of this program.
func Version() string {
	v := release
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 12:
			v += "+" + s.Value[:12]
		case s.Key == "vcs.modified" && s.Value == "true":
			v += ".modified"
		}
	}
	return v
}
