package setting

import "fmt"

// Error reports a key with a bad value. The command exits with status 2 on it.
type Error struct {
	Key  string // "density"
	Got  string // The value that was found.
	Want string // The expected value, or the advice.
	Err  error  // The cause; it may be nil.
	// Instead is a value with which the key would pass this check; nil: none is known. A key that has
	// its default takes it.
	Instead any
}

func (e *Error) Error() string {
	s := "config: " + e.Key
	if e.Got != "" {
		s += " " + e.Got
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	if e.Want != "" {
		s += ": " + e.Want
	}
	return s
}

// ExitCode returns 2, the exit status for bad input.
func (e *Error) ExitCode() int { return 2 }

func (e *Error) Unwrap() error { return e.Err }

// InsteadOf makes the error of a key with a bad value in place of which it may have another one.
// want is a format for args that completes a sentence on the value.
func InsteadOf(key string, got, instead any, want string, args ...any) error {
	return &Error{Key: key, Got: fmt.Sprint(got), Want: fmt.Sprintf(want, args...), Instead: instead}
}

// Invalid makes the error of a key with a bad value. want is a format for args.
func Invalid(key string, got any, want string, args ...any) error {
	return &Error{Key: key, Got: fmt.Sprint(got), Want: fmt.Sprintf(want, args...)}
}
