package config

// Config holds every setting of a run, as a user gives it: some may be auto. What trains reads a
// [Resolved], in which none is. The yaml tag of a field is its key in a file and, with dashes, the
// name of its flag. help is its one line of explanation, in which words in capitals stand for names
// of methods and optimizers (see helpWords). same:"y" marks keys that never change a trajectory, and
// same:"move" keys that a resumed run may change. group is the topic of a section, or of a field that
// differs from its section.
//
// The keys are flat in files and flags. The sections only group them here; their order is the order
// of the keys. effect.go says which keys have an effect on which runs.
type Config struct {
	DataKeys                         `yaml:",inline" group:"data"`
	DecodingKeys                     `yaml:",inline" group:"data"`
	NetworkKeys                      `yaml:",inline" group:"network"`
	LengthKeys                       `yaml:",inline" group:"method"`
	DualKeys[AutoFloat]              `yaml:",inline" group:"method"`
	AveragingKeys[AutoFloat, string] `yaml:",inline" group:"method"`
	CompressionKeys[string]          `yaml:",inline" group:"exchange"`
	AsyncKeys[AutoFloat]             `yaml:",inline" group:"method"`
	VariantKeys                      `yaml:",inline" group:"method"`
	StepKeys[string]                 `yaml:",inline" group:"method"`
	ExchangeKeys[string]             `yaml:",inline" group:"exchange"`
	BatchKeys                        `yaml:",inline" group:"data"`
	DeviceKeys                       `yaml:",inline" group:"run"`
	ComputeKeys                      `yaml:",inline" group:"run"`
	EvaluationKeys[string]           `yaml:",inline" group:"output"`
	OutputKeys                       `yaml:",inline" group:"output"`
	ExecutionKeys                    `yaml:",inline" group:"run"`

	explicit []string // see SetExplicit
}

// DataKeys choose the data set.
type DataKeys struct {
	Data      string `yaml:"data" help:"data set: synthetic (drawn digits, needs no download), synthetic-images (drawn images), synthetic-text (drawn text), mnist, cifar10, cifar100, fashion-mnist, imagenet, folder (any labelled images), writers (images in a folder for each writer) or text"`
	DataDir   string `yaml:"data_dir" same:"y" help:"folder of the data set's files; for images also an archive, shards or a packed set; for text also a .txt file"`
	DataTrain int    `yaml:"data_train" help:"training examples of a synthetic set; of synthetic-text, characters"`
	DataTest  int    `yaml:"data_test" help:"test examples of a synthetic set; of synthetic-text, characters"`
}

// DecodingKeys say how the examples of a data set are read.
type DecodingKeys struct {
	Augment   string `yaml:"augment" help:"how training varies its examples: auto (as is usual for the set), none, cifar (moved by up to 4 pixels, mirrored), imagenet (a random box, scaled to the crop, mirrored)"`
	Crop      int    `yaml:"crop" help:"side of the part of an image that the network sees, in pixels; 0 is 224"`
	ImageSize int    `yaml:"image_size" help:"shorter side to which evaluation scales an image before it takes the center; 0 is 8/7 of crop"`
	JPEG      string `yaml:"jpeg" same:"y" help:"what decodes JPEG images: libjpeg (its pixels, on every machine; also auto and turbo), or go (image/jpeg, slower); a run can be resumed only with the same decoder"`
	OnBad     string `yaml:"on_bad" help:"what happens if an image cannot be read: fail, or skip (the next one of the batch takes its place)"`

	ImageColumn string `yaml:"image_column" help:"images in Parquet or Arrow tables: their column; empty finds usual names such as image"`
	LabelColumn string `yaml:"label_column" help:"images in Parquet or Arrow tables: the column of their labels; empty finds usual names such as label"`
	Tokenizer   string `yaml:"tokenizer" help:"text: char (its characters), byte, gpt2 (the byte pairs of GPT-2), or auto (as the files of tokens say; char for .txt files)"`
}

// NetworkKeys choose the network and its initial weights.
type NetworkKeys struct {
	Model      string  `yaml:"model" help:"network: mlp, resnet18, 34, 50, 101 or 152 for large images, resnet20, 32, 44 or 56 for small ones, with -gn for group norm or -evonorm for EvoNorm-S0 in place of batch norm, gn-lenet, vgg11, gpt-nano, gpt-char, gpt2, gpt2-medium or llama-nano for text"`
	Hidden     Widths  `yaml:"hidden" help:"mlp: widths of the hidden layers, comma separated; none is a linear model; language models: width of the feed-forward layers, none is 4 times width, llama 8/3 times"`
	Activation string  `yaml:"activation" help:"mlp: sigmoid or relu"`
	Layers     int     `yaml:"layers" help:"language models: number of layers; 0 is that of the network"`
	Heads      int     `yaml:"heads" help:"language models: heads of the attention, which divide width; 0 is the number of the network"`
	Width      int     `yaml:"width" help:"language models: numbers of a token between the layers; 0 is the width of the network"`
	GELU       string  `yaml:"gelu" help:"gpt: form of GELU: tanh, as GPT-2 has it, or erf"`
	Bias       bool    `yaml:"bias" help:"gpt: biases in linear and norm layers"`
	Dropout    float64 `yaml:"dropout" help:"share of the numbers that training replaces by 0, the others divided by 1 minus it: mlp, after each activation; vgg11, before its hidden dense layers (0.5 in its source); gpt, of the embedding and of what each layer adds"`
	Block      int     `yaml:"block" help:"language models: tokens of a window T, of which each predicts the next; 0 is that of the network"`
	Init       string  `yaml:"init" help:"weights to start from: a safetensors file of this network, as fspda export writes from a run folder; empty draws them from the seed"`
	Head       string  `yaml:"init_head" help:"init: file (all weights), or new, which draws those of the last layer from the seed, for other classes"`
}

// LengthKeys choose the algorithm, the length of the run and the step size.
type LengthKeys struct {
	Algo       string  `yaml:"algo" help:"ALGORITHMS; help describes them"`
	Params     Params  `yaml:"params" help:"settings of the algorithm's own, NAME=VALUE, as in beta=0.9; in a file params: {beta: 0.9}"`
	Iterations int     `yaml:"iterations" group:"run" help:"number of iterations T"`
	Epochs     float64 `yaml:"epochs" group:"run" help:"passes of a mean agent over its own data, in place of iterations; 0: iterations is the length of the run"`
	Alpha      float64 `yaml:"alpha" help:"primal step size (learning rate); the largest one of a schedule"`
}

// DualKeys are the gains of the FSPDA algorithms.
type DualKeys[F Number] struct {
	Eta     F       `yaml:"eta" help:"fspda: dual-to-primal gain at the largest alpha; auto derives it from the graph's spectrum"`
	Gamma   float64 `yaml:"gamma" help:"fspda, gasloc: gossip gain; 0.5 averages a pair"`
	Beta    float64 `yaml:"beta" help:"fspda: dual step size"`
	AX      float64 `yaml:"a_x" help:"fspda-storm, fspda-async-storm: weight of the newest sample in the primal momentum; 1 is fspda-sa"`
	ALambda float64 `yaml:"a_lambda" help:"fspda-storm, fspda-async-storm: weight of the newest sample in the dual momentum"`
}

// AveragingKeys belong to the algorithms that average models.
type AveragingKeys[F Number, N ~string] struct {
	Theta      F       `yaml:"theta" help:"dsgd, choco, beer: consensus step size; auto is 0.5 for dsgd, or 1/(1 + the largest degree) where all edges at once would not bear that, and half the stable limit for choco and beer"`
	Weights    N       `yaml:"weights" help:"dsgd: constant (theta), metropolis (of the active graph), process (those of the edge process, such as base(2)), or auto (process where it has weights, else constant)"`
	Order      string  `yaml:"order" help:"dsgd: cta (combine then adapt) or atc (adapt then combine)"`
	Mixing     string  `yaml:"mixing" help:"d2, exact-diffusion, edm, scaffnew, led, kgt, extra, choco, beer: fixed mixing matrix W: metropolis, lazy-metropolis, laplacian(0.1), uniform, half-lazy(laplacian(0.2))"`
	LocalSteps int     `yaml:"local_steps" help:"scaffnew, led, kgt: local steps between two averagings; 0 follows edges, or is 10 with edges auto; local-sgd, diloco, noloco, gasloc: steps of a round; 0 is 10; qg-dsgdm: the same; 0 is 1; sparta, sparta-diloco, streaming-diloco: iterations from one average to the next; 0 is 1; blocking swarm: steps of a pair; 0 is 1"`
	Share      float64 `yaml:"share" help:"scaffnew: share c of the averaging step, at most 1"`
	OuterStep  float64 `yaml:"outer_step" help:"kgt: outer step eta_s; 1 keeps the result of the local steps"`
	Delta      float64 `yaml:"delta" help:"extra: W~ = W + delta (I-W), at most 0.5"`
	Rho        F       `yaml:"rho" help:"prox-gpda: penalty; its step is 1/(2 rho degree); auto makes alpha the largest of these steps"`
	Kappa      float64 `yaml:"kappa" help:"next: the step size decays as b(t+1) = b(t) (1 - kappa b(t)); 0 keeps it constant"`
}

// CompressionKeys belong to the algorithms that compress vectors, choco and swarm.
type CompressionKeys[N ~string] struct {
	Compress      N      `yaml:"compress" help:"choco, beer: VALUES; swarm: identity, CODES; demo: COEFFICIENTS, the 32 largest cosine coefficients of each chunk of sides up to 64"`
	Norms         string `yaml:"norms" help:"NORMS: one norm for each tensor, or one for the flat vector"`
	Early         bool   `yaml:"early" help:"choco: compress and send before the gradient is computed (EF21)"`
	Swarm         string `yaml:"swarm" help:"swarm: nonblocking, or blocking"`
	Initiator     string `yaml:"initiator" help:"non-blocking swarm: which end of an exchange publishes its progress: global (one end, the same for both: the drawn edge's first, or a coin's choice), or degree (the released program's rule: an agent whose number is the iteration modulo its degree + 1, which may be both ends or none)"`
	ReferenceBits string `yaml:"reference_bits" help:"choco: how bits_reference is counted: honest, or published, as the released program does"`
}

// AsyncKeys belong to fspda-async.
type AsyncKeys[F Number] struct {
	Coef        string  `yaml:"coef" help:"fspda-async: gradient coefficient: inverse (1/frequency), one, or printed (as in the paper's appendix)"`
	CMax        F       `yaml:"c_max" help:"fspda-async: the largest gradient coefficient; auto is 10, or twice the factor between the slowest and the fastest agent if that is more"`
	ComputeTime string  `yaml:"compute_time" help:"fspda-async: virtual time of a gradient, of mean 1: constant, exp, uniform, lognormal(0.5)"`
	Slowness    string  `yaml:"slowness" help:"fspda-async: factors of the agents' gradient times: equal, linear(6), straggler(6), random(6)"`
	Contacts    float64 `yaml:"contacts" help:"fspda-async: mean number of exchanges to which an agent is called in a unit of virtual time"`
	Clock       string  `yaml:"clock" help:"fspda-async: virtual (the same run every time) or real (between processes: agents compute and exchange at their own pace, without waiting for each other)"`
	GiveUp      float64 `yaml:"give_up" same:"y" help:"clock real: seconds after which an unfinished exchange no longer keeps an agent from other exchanges"`
	DropAfter   float64 `yaml:"drop_after" same:"y" help:"clock real: seconds of silence after which an agent is dropped from the run; 0 is never"`
}

// VariantKeys choose variants of the FSPDA algorithms.
type VariantKeys struct {
	Dual        string `yaml:"dual" help:"fspda-sa: same-time, or stale-neighbour, the released program's dual step"`
	StormStart  string `yaml:"storm_start" help:"fspda-storm: initial momenta: gradient (the first gradient) or zero"`
	StormLambda string `yaml:"storm_lambda" help:"fspda-storm: exact, or lagged, the released program's average of lambda"`
}

// StepKeys shape the gradient step: schedule, momentum, regularisation.
type StepKeys[N ~string] struct {
	EtaSchedule  string  `yaml:"eta_schedule" help:"coupled (eta follows alpha) or constant"`
	Optimizer    N       `yaml:"optimizer" help:"what makes directions of gradients: GENERAL, or that of OTHERS; auto is heavy-ball with a momentum, else sgd"`
	Momentum     float64 `yaml:"momentum" help:"READERS: factor mu, for which 0 is 0.9; multiplies the effective step by 1/(1-mu)"`
	Beta1        float64 `yaml:"beta1" help:"READERS: decay rate of the mean of the gradients"`
	Beta2        float64 `yaml:"beta2" help:"READERS: decay rate of the mean of their squares"`
	Eps          float64 `yaml:"eps" help:"READERS: number added to the root of the mean square; with gt-adam inside the root"`
	Placement    N       `yaml:"placement" help:"fspda-sa, fspda-sa-sketch, scaffnew, led, kgt, d2, exact-diffusion, dsgt, diging, next: where the optimizer stands: local (on the gradient alone), corrected (on the gradient with the method's correction), or auto (corrected for dsgt, diging and next, and with adamw, except for kgt and for language models)"`
	WeightDecay  float64 `yaml:"weight_decay" help:"L2 coefficient wd of the term wd/2·|x|², or decoupled weight decay"`
	DecayForm    N       `yaml:"decay_form" help:"coupled (the L2 term is part of objective and gradient), decoupled (wd·x is added to the direction of the optimizer), or auto (decoupled with DECOUPLED)"`
	DecayTensors string  `yaml:"decay" help:"what weight_decay applies to: no-norm, all but the parameters of norms; all; weights, which leaves out biases too; or by-name(conv*,fc), the tensors that match; by-name(*,!bn*,!*.*.bn*) is the released program's rule"`
	Smoothing    float64 `yaml:"label_smoothing" help:"share of the target that is spread over all classes, such as 0.1"`
	Schedule     string  `yaml:"schedule" help:"constant or cosine"`
	Warmup       float64 `yaml:"warmup" help:"cosine: epochs of linear warm-up"`
	WarmupT      int     `yaml:"warmup_iterations" help:"cosine: iterations of linear warm-up, in place of warmup"`
	DecayT       int     `yaml:"decay_iterations" help:"cosine: the iteration from which on alpha is min_alpha; 0 is the length of the run, without warmup_iterations and min_alpha in epochs"`
	MinAlpha     float64 `yaml:"min_alpha" help:"cosine by iterations: the step size at the end"`
	ClipNorm     float64 `yaml:"clip_norm" help:"largest norm of an agent's gradient, with algo sgd of the mean of all, before weight decay is added: larger gradients are scaled down to it; 0 is no limit"`
	Freeze       string  `yaml:"freeze" help:"tensors that are not trained, comma separated: names up to a dot, as conv1,layer1.0; * is any part of a name, and ! excepts: *,!fc"`
	LayerLR      string  `yaml:"layer_lr" help:"factors of the step sizes of tensors, the last that matches counts: layer*=0.1,fc=10"`
}

// ExchangeKeys choose the agents, their graph and what an exchange carries.
type ExchangeKeys[N ~string] struct {
	Agents  int     `yaml:"agents" help:"number of agents n"`
	Graph   string  `yaml:"graph" help:"GRAPHS; those with a process of the same name, such as base(2), choose the edges, too"`
	Edges   N       `yaml:"edges" help:"edge process: auto, one-edge, k-edges(2), bernoulli(0.1), matching, periodic(10), coin(0.1), one-peer-exp, push(1), full, ...; auto is that of the graph where it has one"`
	Mask    N       `yaml:"mask" help:"coordinates of an exchange: auto, randk, randk-per-layer, bernoulli, stratified, block, cycle, all"`
	Density float64 `yaml:"density" help:"share of the coordinates in an exchange, above 0 and at most 1"`
	Wire    string  `yaml:"wire" help:"format in which the values of an exchange are sent, and to which both ends round them: fp32, fp16 or bf16"`
}

// BatchKeys choose how the data is split and sampled.
type BatchKeys struct {
	Partition string `yaml:"partition" help:"data split: shuffled, sorted, by-class, by-writer, contiguous (of text), dirichlet(0.3), dirichlet-equal(0.3), file(PATH)"`
	Objective string `yaml:"objective" help:"weights of the agents in the objective: agents (equal) or samples (by shard size)"`
	Batch     int    `yaml:"batch" help:"examples per agent and iteration"`
	Accum     int    `yaml:"accumulate" help:"parts of a batch whose gradients are computed one after the other, to save memory; batch norm sees one part at a time"`
	Sampling  string `yaml:"sampling" help:"epochs (without replacement), iid (with) or full (the whole shard)"`
	Seed      uint64 `yaml:"seed" group:"run" help:"seed of every random choice"`
}

// DeviceKeys choose the device.
type DeviceKeys struct {
	Device string `yaml:"device" same:"move" help:"auto (a GPU where one can be used, else the CPU), cpu, cuda (all GPUs, among which the agents are distributed), cuda:N for GPU N, or several as in cuda:0,1; fspda devices lists them. A run may be resumed on another device"`
}

// ComputeKeys choose the arithmetic of a device.
type ComputeKeys struct {
	Precision     string `yaml:"precision" help:"of networks on a GPU: fp32; tf32, which rounds the factors of matrix products and convolutions to 10 bits; fp16 or bf16, activations and weights of 16 bits, with a dynamic loss scale in fp16. Models, gradients and exchanges always have 32 bits"`
	Deterministic bool   `yaml:"deterministic" help:"on a GPU, use only convolution algorithms that give the same bits in each run; otherwise the fastest ones. The CPU is always deterministic"`
}

// EvaluationKeys choose when and how models are evaluated.
type EvaluationKeys[N ~string] struct {
	EvalPoints   int     `yaml:"eval_points" help:"evaluations after the first one; iteration 0 is always evaluated"`
	EvalEpochs   float64 `yaml:"eval_epochs" help:"epochs from one evaluation to the next, in place of eval_points; 0: eval_points is the number of evaluations"`
	Metrics      N       `yaml:"metrics" same:"y" help:"full (objective and gradient over all training data), test (test set; training loss of the agents' own batches) or auto (full where that is cheap)"`
	EvalTest     int     `yaml:"eval_test" same:"y" help:"test examples of an evaluation, spread evenly over the set; 0 is all; of a text, windows"`
	EvalRandom   int     `yaml:"eval_random" same:"y" help:"text: batches of random windows of an evaluation, in place of the fixed ones; 0 is none"`
	SampleTokens int     `yaml:"sample_tokens" same:"y" help:"text: tokens that the mean model writes at each row, into samples.jsonl and on the page; 0 is none"`
	BN           string  `yaml:"bn" same:"y" help:"batch norm of the mean model: pooled (from the agents' statistics; recalibrated for the last row), recalibrate (measured anew) or local (each agent's in turn)"`
	BNBatches    int     `yaml:"bn_batches" same:"y" help:"training batches of a recalibration; at most two passes over the training set, and one batch for each gradient of the run"`
	Accounting   string  `yaml:"accounting" same:"y" help:"what bits_total counts: shared-seed, packed or reference; all three are always kept"`
}

// OutputKeys choose the checkpoints.
type OutputKeys struct {
	Checkpoint float64 `yaml:"checkpoint_every" same:"y" help:"seconds between checkpoints; 0 keeps only the last one"`
	Keep       int     `yaml:"keep_checkpoints" same:"y" help:"number of checkpoints to keep, in addition to the best mean model"`
}

// ExecutionKeys choose simulated links and how the run is computed.
type ExecutionKeys struct {
	Links        string  `yaml:"links" group:"exchange" same:"y" help:"file of a simulated network: latencies, bandwidths, losses, times of gradients; every row then has its virtual time"`
	EvalAgents   int     `yaml:"eval_agents" group:"output" same:"y" help:"number of agents whose models an evaluation scores in addition to their mean, spread evenly; 0 is all"`
	Recompute    string  `yaml:"recompute" same:"y" help:"residual networks and language models: none, or blocks, which recomputes the activations inside blocks instead of keeping them: a third of the memory, a third more work"`
	GradientTime float64 `yaml:"gradient_time" same:"y" help:"least time of a gradient in seconds, multiplied by the agent's slowness, to emulate slow machines; 0 is no minimum"`
	Threads      int     `yaml:"threads" same:"y" help:"cores to use; 0 is all; with more cores than agents, each agent uses several"`
}

// Default returns the configuration of the default job: FSPDA-SA trains an MLP on drawn digits,
// over ten agents that hold different classes.
func Default() Config {
	return Config{
		DataKeys:     DataKeys{Data: "synthetic", DataTrain: 10000, DataTest: 2000},
		DecodingKeys: DecodingKeys{Augment: "auto", JPEG: "auto", OnBad: "fail", Tokenizer: "auto"},
		NetworkKeys: NetworkKeys{Model: "mlp", Hidden: Widths{100}, Activation: "sigmoid", GELU: "tanh", Bias: true,
			Head: HeadFile},
		LengthKeys: LengthKeys{Algo: "fspda-sa", Iterations: 3000, Alpha: 0.3},
		DualKeys:   DualKeys[AutoFloat]{Eta: AutoFloat{Auto: true}, Gamma: 0.5, Beta: 1, AX: 0.1, ALambda: 0.1},
		AveragingKeys: AveragingKeys[AutoFloat, string]{Theta: AutoFloat{Auto: true}, Mixing: "metropolis", Share: 1,
			OuterStep: 1,
			Delta:     0.5, Rho: AutoFloat{Auto: true}, Weights: auto, Order: "cta"},
		CompressionKeys: CompressionKeys[string]{Compress: "auto", Norms: "tensor", Swarm: "nonblocking",
			Initiator:     "global",
			ReferenceBits: "honest"},
		AsyncKeys: AsyncKeys[AutoFloat]{Coef: "inverse", CMax: AutoFloat{Auto: true}, ComputeTime: "exp",
			Slowness: "equal",
			Contacts: 1, Clock: ClockVirtual, GiveUp: 5},
		VariantKeys: VariantKeys{Dual: "same-time", StormStart: "gradient", StormLambda: "exact"},
		StepKeys: StepKeys[string]{EtaSchedule: "coupled", Optimizer: "auto", Beta1: 0.9, Beta2: 0.999, Eps: 1e-8,
			Placement: "auto", WeightDecay: 1e-4, DecayForm: "auto", DecayTensors: "no-norm",
			Schedule: "constant", Warmup: 5},
		ExchangeKeys: ExchangeKeys[string]{Agents: 10, Graph: "complete", Edges: "auto", Mask: "auto", Density: 0.1,
			Wire: "fp32"},
		BatchKeys: BatchKeys{Partition: "dirichlet-equal(0.3)", Objective: "agents", Batch: 64, Accum: 1,
			Sampling: "epochs", Seed: 1},
		DeviceKeys:  DeviceKeys{Device: "auto"},
		ComputeKeys: ComputeKeys{Precision: "fp32"},
		EvaluationKeys: EvaluationKeys[string]{EvalPoints: 20, Metrics: "auto", BN: BNPooled, BNBatches: 200,
			Accounting: "shared-seed"},
		OutputKeys:    OutputKeys{Checkpoint: 60, Keep: 2},
		ExecutionKeys: ExecutionKeys{Recompute: "none"},
	}
}
