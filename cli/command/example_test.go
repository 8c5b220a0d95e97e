package command_test

import (
	"fmt"

	"fspda/cli/command"
)

func ExampleExitStatus() {
	err := fmt.Errorf("start: %w", command.UsageErrorf("--agents %d: expected at least 1", 0))
	fmt.Println(command.ExitStatus(nil), command.ExitStatus(err), command.ExitStatus(fmt.Errorf("disk")))
	// Output: 0 2 1
}

func ExampleDidYouMean() {
	fmt.Println("unknown command trian" + command.DidYouMean("trian", []string{"train", "runs"}, ""))
	// Output: unknown command trian; did you mean train?
}
