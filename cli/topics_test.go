package cli

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"fspda/cli/benchcmd"
	"fspda/cli/datacmd"
	"fspda/cli/devicecmd"
	"fspda/cli/docscmd"
	"fspda/cli/figurecmd"
	"fspda/cli/modelcmd"
	"fspda/cli/queuecmd"
	"fspda/cli/runscmd"
	"fspda/cli/traincmd"
)

// Each package of commands has those of its topic, in the order of the help. The packages have no
// such test of their own, since each would link the whole program again.
func TestCommandsOfTopics(t *testing.T) {
	for want, commands := range map[string][]*cobra.Command{
		"bench":                      benchcmd.Commands(),
		"data":                       datacmd.Commands(),
		"devices selftest":           devicecmd.Commands(),
		"docs man reference version": docscmd.Commands(),
		"figure sweep tune theory replay compare plot": figurecmd.Commands(),
		"export eval predict sample":                   modelcmd.Commands(),
		"queue":                                        queuecmd.Commands(silentRoot),
		"runs web":                                     runscmd.Commands(),
		"train up agent certs":                         traincmd.Commands(),
	} {
		var names []string
		for _, c := range commands {
			names = append(names, c.Name())
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("the commands of a topic are %q, want %q", got, want)
		}
	}
}
