package setup_test

import (
	"fmt"

	"github.com/spf13/pflag"

	"fspda/cli/setup"
	"fspda/train"
)

// From a command line to a network and a resolved configuration.
func Example() {
	c := train.Default()
	flags := pflag.NewFlagSet("train", pflag.ContinueOnError)
	setup.ConfigFlags(flags, &c)
	err := flags.Parse([]string{"--agents", "2", "--data-train", "200", "--batch", "8", "--device", "cpu"})
	if err != nil {
		fmt.Println(err)
		return
	}
	if c, err = setup.ReadConfig("", "", flags); err != nil {
		fmt.Println(err)
		return
	}
	devices, err := setup.OpenDevices(c, setup.AgentThreads(c), c.Agents)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer devices.Close()
	s, net, err := setup.Prepare(c, devices)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Set.Close()
	fmt.Println(net.Name(), "on", devices.Name(), "for", s.Config.Agents, "agents")
	// Output: mlp 784-100-10 sigmoid on cpu for 2 agents
}
