// Package devicecmd holds the commands about devices: devices lists them, selftest checks their
// results.
package devicecmd

import "github.com/spf13/cobra"

// Commands returns the commands of this package.
func Commands() []*cobra.Command { return []*cobra.Command{newDevices(), newSelftest()} }
