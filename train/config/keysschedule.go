package config

import "fspda/train/setting"

// ScheduleKeys choose the course of the step size, and changes of a gradient before the step.
type ScheduleKeys struct {
	Schedule    string  `key:"schedule"`
	Warmup      float64 `key:"warmup"`
	WarmupT     int     `key:"warmup_iterations"`
	DecayT      int     `key:"decay_iterations"`
	MinAlpha    float64 `key:"min_alpha"`
	DecayLength float64 `key:"decay_length"`
	DecayShape  string  `key:"decay_shape"`
	Milestones  string  `key:"milestones"`
	StepFactor  float64 `key:"step_factor"`
	ClipNorm    float64 `key:"clip_norm"`
	Freeze      string  `key:"freeze"`
	LayerLR     string  `key:"layer_lr"`
}

var scheduleKeys = []setting.Key{
	{Name: "schedule", Topic: "method", Default: scheduleConstant,
		Choices: []string{scheduleConstant, scheduleCosine, scheduleWSD, scheduleLinear, scheduleStep,
			scheduleInverseRoot},
		Help: "course of alpha: constant; cosine; wsd, which is constant until a decay at the end; linear; step, " +
			"which falls at milestones; or inverse-sqrt, which falls with the root of the iterations"},
	{Name: "warmup", Topic: "method", Default: 5, Range: "[0, inf)", Want: "0 or more epochs",
		Needs: []setting.Need{needsCosine,
			needs("schedule cosine without warmup_iterations, decay_iterations and min_alpha",
				func(c Config) bool { return !c.cosineByIterations() })},
		Help: "cosine: epochs of linear warm-up"},
	{Name: "warmup_iterations", Topic: "method", Whole: true, Range: "[0, inf)", Want: "at least 0",
		Since: "0.2.0", Help: "iterations of linear warm-up; cosine: in place of warmup"},
	{Name: "decay_iterations", Topic: "method", Whole: true, Range: "[0, inf)", Want: "at least 0",
		Needs: []setting.Need{needsEnd}, Since: "0.2.0",
		Help: "cosine, linear: the iteration from which on alpha is min_alpha; 0 is the length of the run, without " +
			"warmup_iterations and min_alpha in epochs"},
	{Name: "min_alpha", Topic: "method", Range: "[0, inf)", Want: "0 or more", Needs: []setting.Need{needsFall},
		Since: "0.2.0",
		Help:  "cosine by iterations, linear, wsd: the step size at the end"},
	{Name: "decay_length", Topic: "method", Default: 0.2, Range: "(0, inf)", Check: checkDecayLength,
		Want: "above 0: iterations, or below 1 a share of the run", Since: "0.2.0",
		Needs: []setting.Need{needsSchedule(scheduleWSD)},
		Help:  "wsd: iterations of the decay at the end, or below 1 their share of the run"},
	{Name: "decay_shape", Topic: "method", Default: decaySqrt, Choices: []string{decaySqrt, decayLinear, decayCosine},
		Since: "0.2.0", Needs: []setting.Need{needsSchedule(scheduleWSD)},
		Help: "wsd: form of the decay: sqrt, linear or cosine"},
	{Name: "milestones", Topic: "method", Default: "", Check: checkMilestones, Since: "0.2.0",
		Needs: []setting.Need{needsSchedule(scheduleStep)},
		Help:  "step: iterations from which on alpha is multiplied by step_factor once more, comma separated"},
	{Name: "step_factor", Topic: "method", Default: 0.1, Range: "(0, 1]", Want: "above 0 and at most 1",
		Since: "0.2.0", Needs: []setting.Need{needsSchedule(scheduleStep)},
		Help: "step: factor of alpha at each milestone"},
	{Name: "clip_norm", Topic: "method", Range: "[0, inf)", Want: "0, for no limit, or a norm above it",
		Help: "largest norm of an agent's gradient, with algo sgd of the mean of all, before weight decay is added: " +
			"larger gradients are scaled down to it; 0 is no limit"},
	{Name: "freeze", Topic: "method", Default: "", Check: someNames, Since: "0.2.0",
		Help: "tensors that are not trained, comma separated: names up to a dot, as conv1,layer1.0; * is any part " +
			"of a name, and ! excepts: *,!fc"},
	{Name: "layer_lr", Topic: "method", Default: "", Check: checkFactors, Since: "0.2.0",
		Help: "factors of the step sizes of tensors, the last that matches counts: layer*=0.1,fc=10"},
}
