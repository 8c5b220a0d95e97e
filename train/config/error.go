package config

import "fspda/train/setting"

// Error reports a key with a bad value. The command exits with status 2 on it.
type Error = setting.Error

// Invalid makes the error of a key with a bad value. want is a format for args.
func Invalid(key string, got any, want string, args ...any) error {
	return setting.Invalid(key, got, want, args...)
}
