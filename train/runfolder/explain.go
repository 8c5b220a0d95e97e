package runfolder

// explain joins the parts of an error message: what was found, its cause, and what to do.
func explain(found string, cause error, hint string) string {
	if cause != nil {
		found += ": " + cause.Error()
	}
	if hint != "" {
		found += ": " + hint
	}
	return found
}
