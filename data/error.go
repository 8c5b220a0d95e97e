package data

import "fspda/data/format"

// FormatError reports a malformed file.
type FormatError = format.Error
