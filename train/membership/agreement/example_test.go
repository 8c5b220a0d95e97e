package agreement_test

import (
	"fmt"

	"fspda/train/membership"
	"fspda/train/membership/agreement"
)

// A process that has kept no log begins as the first agent of its slot, and agent 0 evaluates.
func ExampleKept() {
	life, v := agreement.Kept("no-such-log.raft", membership.Rules{Agents: 3, MinAgents: 2})
	fmt.Println("life", life, "writer", v.Writer, "changes", len(v.Epochs))
	// Output:
	// life 0 writer 0 changes 0
}
