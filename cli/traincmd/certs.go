package traincmd

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"regexp"
	"time"

	"github.com/spf13/cobra"

	"fspda/cli/command"
	"fspda/dist/link"
)

// certificates are the flags of certs.
type certificates struct {
	out, run     string
	agents, days int
	servers      []string
	serves       bool // --nats-server was given
}

// Limits that catch typing errors: of certificates, which are files, and of days, 100 years.
const (
	maxCertified = 10000
	maxDays      = 36500
)

// hostName is a name of a host in a certificate, which may begin with a wildcard.
var hostName = regexp.MustCompile(`^(\*\.)?[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*` +
	`[A-Za-z0-9_])?)*$`)

func (c *certificates) check() error {
	if c.agents < 1 || c.agents > maxCertified {
		return command.UsageErrorf("--agents %d: expected 1 to %d", c.agents, maxCertified)
	}
	if c.days < 1 || c.days > maxDays {
		return command.UsageErrorf("--days %d: expected 1 to %d", c.days, maxDays)
	}
	if c.serves && len(c.servers) == 0 {
		return command.UsageErrorf("--nats-server is empty: name the host of the NATS server, or leave it out")
	}
	for _, host := range c.servers {
		if net.ParseIP(host) == nil && !hostName.MatchString(host) {
			return command.UsageErrorf("--nats-server %q: expected names of hosts or IP addresses, with commas "+
				"between them, without a port", host)
		}
	}
	return nil
}

func (c *certificates) write() error {
	valid := time.Duration(c.days) * 24 * time.Hour
	err := link.WriteCredentials(c.out, c.run, c.agents, valid)
	if err == nil && len(c.servers) > 0 {
		err = link.WriteServerCredentials(c.out, c.run, c.servers, valid)
	}
	if errors.As(err, new(*fs.PathError)) {
		return command.CannotWrite(c.out, "choose a folder that you may write to with --out", err)
	}
	if err != nil {
		return command.UsageErrorf("%v", err)
	}
	return nil
}

func newCerts() *cobra.Command {
	var c certificates
	cmd := &cobra.Command{
		Use:   "certs",
		Short: "Make certificates by which the machines of a run authenticate each other",
		Long: `Make a certificate authority for one run and a certificate for each of its agents.

Copy ca.pem and the two files of its agent to each machine. Do not copy ca-key.pem: its owner can add agents.`,
		Example: `  fspda certs --run digits -n 4 --out certs`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.serves = cmd.Flags().Changed("nats-server")
			if err := c.check(); err != nil {
				return err
			}
			if err := c.write(); err != nil {
				return err
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s: ca.pem, and for each of the %d agents of run %s "+
				"agent-RANK.pem and agent-RANK-key.pem, valid for %d days\n", c.out, c.agents, c.run, c.days)
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&c.out, "out", "certs", "folder")
	flags.StringVar(&c.run, "run", "fspda", "name of the run, as for fspda agent")
	flags.IntVarP(&c.agents, "agents", "n", 10, "number of agents")
	flags.StringSliceVar(&c.servers, "nats-server", nil,
		"host names and addresses of a NATS server: also make its certificate, nats-server.pem")
	flags.IntVar(&c.days, "days", 365, "for how many days the certificates are valid")
	return cmd
}
