package traincmd

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"fspda/cli/command"
	"fspda/dist/nats"
)

func newCerts() *cobra.Command {
	var (
		out, run string
		agents   int
		days     int
		servers  []string
	)
	cmd := &cobra.Command{
		Use:   "certs",
		Short: "Make certificates by which the machines of a run authenticate each other",
		Long: `Make a certificate authority for one run and a certificate for each of its agents.

Copy ca.pem and the two files of its agent to each machine. Do not copy ca-key.pem: its owner can add agents.`,
		Example: `  fspda certs --run digits -n 4 --out certs`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if agents < 1 || days < 1 {
				return command.UsageErrorf("%d agents for %d days: both must be at least 1", agents, days)
			}
			if err := nats.WriteCredentials(out, run, agents, time.Duration(days)*24*time.Hour); err != nil {
				return command.UsageErrorf("%v", err)
			}
			if len(servers) > 0 {
				err := nats.WriteServerCredentials(out, run, servers, time.Duration(days)*24*time.Hour)
				if err != nil {
					return command.UsageErrorf("%v", err)
				}
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s: ca.pem, and for each of the %d agents of run %s "+
				"agent-RANK.pem and agent-RANK-key.pem, valid for %d days\n", out, agents, run, days)
			return err
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&out, "out", "certs", "folder")
	fs.StringVar(&run, "run", "fspda", "name of the run, as for fspda agent")
	fs.IntVarP(&agents, "agents", "n", 10, "number of agents")
	fs.StringSliceVar(&servers, "nats-server", nil,
		"host names and addresses of a NATS server: also make its certificate, nats-server.pem")
	fs.IntVar(&days, "days", 365, "for how many days the certificates are valid")
	return cmd
}
