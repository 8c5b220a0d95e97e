package config

import (
	"fspda/model"
	"fspda/train/setting"
)

// DeviceKeys choose the device, and the program that computes an external model.
type DeviceKeys struct {
	Device        string  `key:"device"`
	Command       string  `key:"command"`
	Clients       int     `key:"clients"`
	ClientTimeout float64 `key:"client_timeout"`
}

// external is the name of the model that another program computes, and of the data set that it
// loads.
const external = model.ExternalName

var needsExternal = needs("model external", func(c Config) bool { return c.Model == external })

var deviceKeys = []setting.Key{
	{Name: "device", Topic: "run", Default: auto,
		Choices: []string{auto, "cpu", "cuda", "cuda:0"}, Forms: true, Check: checkDevice, Resume: setting.Moves,
		Help: "auto (a GPU where one can be used, else the CPU), cpu, cuda (all GPUs, among which the agents are " +
			"distributed), cuda:N for GPU N, or several as in cuda:0,1; fspda devices lists them. A run may be " +
			"resumed on another device"},
	{Name: "command", Topic: "network", Default: "", Needs: []setting.Need{needsExternal}, Resume: setting.Moves,
		Since: "0.2.0",
		Help: "model external: the program that computes the model, as in 'python3 my_model.py'. A run may be " +
			"resumed with another command for the same model"},
	{Name: "clients", Topic: "network", Default: 1, Whole: true, Range: "[1, 1024]", Want: "1 to 1024",
		Needs: []setting.Need{needsExternal}, Resume: setting.Computed, Since: "0.2.0",
		Help: "model external: processes of the program, which compute for as many agents at once"},
	{Name: "client_timeout", Topic: "network", Default: 600, Range: "[0, 1e9]", Want: "0 or more seconds",
		Needs: []setting.Need{needsExternal}, Resume: setting.Computed, Since: "0.2.0",
		Help: "model external: seconds after which a program that does not answer is started again; 0 is for ever"},
}

// ComputeKeys choose the arithmetic of a device.
type ComputeKeys struct {
	Precision     string `key:"precision"`
	Deterministic bool   `key:"deterministic"`
}

var computeKeys = []setting.Key{
	{Name: "precision", Topic: "run", Default: "fp32", Choices: []string{"fp32", "tf32", "fp16", "bf16"},
		Needs: []setting.Need{needs("a GPU (device cuda, or auto)",
			func(c Config) bool { return c.Device != "cpu" || c.Precision == "fp32" || c.Precision == "bf16" })},
		Help: "of networks on a GPU: fp32; tf32, which rounds the factors of matrix products and convolutions to 10 " +
			"bits; fp16 or bf16, activations and weights of 16 bits, with a dynamic loss scale in fp16. On the CPU: " +
			"fp32; bf16, which rounds the factors of products and convolutions, and activations between " +
			"convolutions, to 8 bits. Models, gradients and exchanges always have 32 bits"},
	{Name: "deterministic", Topic: "run", Default: false, Since: "0.1.0",
		Help: "on a GPU, use only convolution algorithms that give the same bits in each run; otherwise the fastest " +
			"ones. The CPU is always deterministic"},
}

// ExecutionKeys choose simulated links, who takes part, and how the run is computed.
type ExecutionKeys struct {
	Links        string  `key:"links"`
	Membership   string  `key:"membership"`
	MinAgents    int     `key:"min_agents"`
	Orphans      string  `key:"orphans"`
	EvalAgents   int     `key:"eval_agents"`
	Recompute    string  `key:"recompute"`
	GradientTime float64 `key:"gradient_time"`
	Threads      int     `key:"threads"`
}

var executionKeys = []setting.Key{
	{Name: "links", Topic: "exchange", Default: "", Resume: setting.Recorded, Inert: notClocked,
		Help: "file of a simulated network: latencies, bandwidths, losses, times of gradients; every row then has " +
			"its virtual time"},
	{Name: "eval_agents", Topic: "output", Whole: true, Range: "[0, inf)", Want: "at least 0",
		Needs: []setting.Need{needsRun("at least as many agents",
			func(s *Setup, c Config) bool { return c.EvalAgents <= s.Graph.N })},
		Resume: setting.Recorded,
		Help: "number of agents whose models an evaluation scores in addition to their mean, spread evenly; 0 is " +
			"all"},
	{Name: "recompute", Topic: "run", Default: "none", Choices: []string{"none", "blocks"}, Resume: setting.Recorded,
		Help: "residual networks and language models: none, or blocks, which recomputes the activations inside " +
			"blocks instead of keeping them: a third of the memory, a third more work"},
	{Name: "gradient_time", Topic: "run", Range: "[0, inf)", Want: "0 or more seconds", Resume: setting.Recorded,
		Help: "least time of a gradient in seconds, multiplied by the agent's slowness, to emulate slow machines; 0 " +
			"is no minimum"},
	{Name: "threads", Topic: "run", Whole: true, Range: "[0, 1024]", Want: "0, for all cores, to 1024",
		Resume: setting.Computed,
		Help:   "cores to use; 0 is all that it may use; with more cores than agents, each agent uses several"},
}
