// Package traincmd holds the commands that train: train, up and agent, and certs, which makes the
// certificates of agents.
package traincmd

import "github.com/spf13/cobra"

// Commands returns the commands of this package.
func Commands() []*cobra.Command {
	return []*cobra.Command{newTrain(), newUp(), newAgent(), newAgents(), newCerts()}
}
