//go:build !amd64 || noasm || fspda_noasm

package tile

func pairSetsOfProcessor() []*Set { return nil }
