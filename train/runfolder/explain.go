package runfolder

import (
	"cmp"
	"strings"

	"fspda/internal/wholefile"
)

// explain joins the parts of an error message: the finding, its cause, and the advice.
func explain(found string, cause error, hint string) string {
	others := "" // The causes after the first one.
	if cause != nil {
		first, rest, more := strings.Cut(cause.Error(), "\n")
		if found += ": " + first; more {
			others = "\n" + rest
		}
	}
	if hint = cmp.Or(wholefile.LimitHint(cause), hint); hint != "" {
		found += ": " + hint
	}
	return found + others
}

// writeHint returns the advice after files could not be written because of err: resume, once the
// disk has room if it was full.
func writeHint(err error, resume string) string {
	if wholefile.DiskFull(err) {
		return "make room, then " + resume
	}
	return resume
}
