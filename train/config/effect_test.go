package config

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fspda/model"
)

// effectCases has, for each key that not every run uses, a configuration that has no use for it and
// one that has.
var effectCases = map[string]struct{ refused, accepted string }{
	"data_dir":       {"{data: synthetic, data_dir: x}", "{data: mnist, data_dir: x}"},
	"data_train":     {"{data: mnist, data_train: 400}", "{data_train: 400}"},
	"data_test":      {"{data: cifar10, data_test: 100}", "{data: synthetic-images, data_test: 100}"},
	"crop":           {"{crop: 32}", "{data: folder, crop: 32}"},
	"image_size":     {"{image_size: 40}", "{data: imagenet, image_size: 40}"},
	"jpeg":           {"{jpeg: go}", "{data: folder, jpeg: go}"},
	"on_bad":         {"{data: cifar10, on_bad: skip}", "{data: folder, on_bad: skip}"},
	"init_head":      {"{init_head: file}", "{init: w.safetensors, init_head: new}"},
	"iterations":     {"{epochs: 2, iterations: 3000}", "{epochs: 0, iterations: 3000}"},
	"eval_points":    {"{eval_epochs: 4, eval_points: 20}", "{eval_points: 20}"},
	"alpha":          {"{algo: prox-gpda, rho: 2, alpha: 0.1}", "{algo: prox-gpda, alpha: 0.1}"},
	"gamma":          {"{algo: dsgd, gamma: 0.3}", "{algo: fspda-storm, gamma: 0.3}"},
	"beta":           {"{algo: choco, beta: 1}", "{algo: fspda-async, beta: 1}"},
	"eta":            {"{algo: dsgd, eta: 0.01}", "{eta: 0.01}"},
	"dual":           {"{algo: dsgd, dual: same-time}", "{dual: stale-neighbour}"},
	"a_x":            {"{a_x: 0.2}", "{algo: fspda-storm, a_x: 0.2}"},
	"a_lambda":       {"{a_lambda: 0.2}", "{algo: fspda-storm, a_lambda: 0.2}"},
	"storm_start":    {"{storm_start: zero}", "{algo: fspda-storm, storm_start: zero}"},
	"storm_lambda":   {"{storm_lambda: lagged}", "{algo: fspda-storm, storm_lambda: lagged}"},
	"theta":          {"{algo: dsgd, weights: metropolis, theta: 0.1}", "{algo: choco, theta: 0.1}"},
	"weights":        {"{weights: metropolis}", "{algo: dsgd, weights: metropolis}"},
	"order":          {"{order: atc}", "{algo: dsgd, order: atc}"},
	"mixing":         {"{mixing: lazy-metropolis}", "{algo: led, mixing: lazy-metropolis, eval_points: 3}"},
	"local_steps":    {"{local_steps: 0}", "{algo: kgt, local_steps: 5, eval_points: 3}"},
	"share":          {"{algo: led, share: 0.5, eval_points: 3}", "{algo: scaffnew, share: 0.5, eval_points: 3}"},
	"outer_step":     {"{algo: led, outer_step: 0.5, eval_points: 3}", "{algo: kgt, outer_step: 0.5, eval_points: 3}"},
	"delta":          {"{delta: 0.3}", "{algo: extra, delta: 0.3}"},
	"rho":            {"{rho: 3}", "{algo: prox-gpda, rho: 3}"},
	"kappa":          {"{kappa: 0.1}", "{algo: next, kappa: 0.1}"},
	"compress":       {"{compress: identity}", "{algo: choco, compress: topk}"},
	"norms":          {"{algo: choco, norms: flat}", "{algo: choco, compress: qsgd-scaled(255), norms: flat}"},
	"reference_bits": {"{reference_bits: published}", "{algo: choco, reference_bits: published}"},
	"swarm":          {"{swarm: blocking}", "{algo: swarm, swarm: blocking}"},
	"initiator":      {"{algo: swarm, swarm: blocking, initiator: degree}", "{algo: swarm, initiator: degree}"},
	"coef":           {"{coef: one}", "{algo: fspda-async, coef: one}"},
	"c_max":          {"{algo: fspda-async, coef: one, c_max: 5}", "{algo: fspda-async, c_max: 5}"},
	"compute_time":   {"{compute_time: constant}", "{algo: fspda-async, compute_time: constant}"},
	"slowness":       {"{slowness: linear(6)}", "{gradient_time: 0.001, slowness: linear(6)}"},
	"contacts":       {"{contacts: 2}", "{algo: fspda-async, contacts: 2}"},
	"clock":          {"{clock: virtual}", "{algo: fspda-async, clock: real}"},
	"give_up":        {"{algo: fspda-async, give_up: 3}", "{algo: fspda-async, clock: real, give_up: 3}"},
	"drop_after":     {"{drop_after: 0}", "{algo: fspda-async, clock: real, drop_after: 3}"},
	"eta_schedule":   {"{eta_schedule: constant}", "{schedule: cosine, warmup: 1, eta_schedule: constant}"},
	"warmup":         {"{warmup: 1}", "{schedule: cosine, warmup: 1}"},

	"decay_iterations": {"{decay_iterations: 50}", "{schedule: cosine, decay_iterations: 50}"},
	"decay_length":     {"{schedule: linear, decay_length: 50}", "{schedule: wsd, decay_length: 50}"},
	"decay_shape":      {"{decay_shape: linear}", "{schedule: wsd, decay_shape: linear}"},
	"milestones":       {"{milestones: '30'}", "{schedule: step, milestones: '30'}"},
	"step_factor":      {"{step_factor: 0.5}", "{schedule: step, milestones: '30', step_factor: 0.5}"},
	"client_timeout":   {"{client_timeout: 5}", "{model: external, client_timeout: 5}"},
	"min_alpha":        {"{min_alpha: 0.001}", "{schedule: cosine, min_alpha: 0.001}"},
	"clip_messages":    {"{algo: sgd, clip_messages: 1}", "{clip_messages: 1}"},

	"eval_agents":  {"{agents: 10, eval_agents: 20}", "{agents: 10, eval_agents: 4}"},
	"tokenizer":    {"{data: synthetic-text, tokenizer: byte}", "{data: text, tokenizer: byte}"},
	"augment":      {"{data: text, augment: none}", "{augment: none}"},
	"auto_augment": {"{data: text, auto_augment: randaugment}", "{auto_augment: randaugment}"},
	"mixup":        {"{data: text, mixup: 0.2}", "{mixup: 0.2}"},
	"cutmix":       {"{model: external, cutmix: 1}", "{cutmix: 1}"},
	"recipe": {"{data: text, recipe: cifar-2021, batch: 8, iterations: 9}",
		"{recipe: cifar-2021, model: mlp, batch: 8, iterations: 9}"},
	"random_erase":   {"{data: text, random_erase: 0.5}", "{random_erase: 0.5}"},
	"repeat_augment": {"{sampling: iid, repeat_augment: 3}", "{repeat_augment: 3}"},
	"sample_tokens":  {"{sample_tokens: 3}", "{data: text, sample_tokens: 3}"},
	"eval_random":    {"{eval_random: 3}", "{data: text, eval_random: 3}"},
	"eval_test":      {"{data: text, eval_random: 3, eval_test: 5}", "{eval_test: 5}"},

	"beta1":      {"{beta1: 0.9}", "{optimizer: adamw, beta1: 0.8}"},
	"beta2":      {"{beta2: 0.999}", "{optimizer: adamw, beta2: 0.9}"},
	"eps":        {"{optimizer: nesterov, eps: 1e-8}", "{optimizer: adamw, eps: 1e-6}"},
	"decay":      {"{weight_decay: 0, decay: weights}", "{decay: weights}"},
	"graph":      {"{algo: sgd, graph: ring}", "{graph: ring}"},
	"edges":      {"{algo: sgd, edges: full}", "{edges: full}"},
	"mask":       {"{algo: sgd, mask: all}", "{mask: randk}"},
	"density":    {"{mask: all, density: 0.1}", "{density: 0.1}"},
	"batch":      {"{sampling: full, batch: 16}", "{batch: 16}"},
	"bn":         {"{bn: local}", "{model: resnet20, bn: local}"},
	"bn_batches": {"{model: resnet20, bn: local, bn_batches: 9}", "{model: resnet20, bn_batches: 9}"},
	"accumulate": {"{accumulate: 17, batch: 16}", "{accumulate: 16, batch: 16}"},
	"command":    {"{command: x}", "{model: external, command: x}"},
	"clients":    {"{clients: 2}", "{model: external, clients: 2}"},
	"precision":  {"{device: cpu, precision: fp16}", "{device: cpu, precision: fp32}"},
	"early":      {"{algo: beer, early: true}", "{algo: choco, early: true}"},
	"min_agents": {"{min_agents: 1}", "{membership: elastic, links: testdata/outages.yaml, min_agents: 2}"},
	"orphans":    {"{orphans: leave}", "{membership: testdata/changes.jsonl, orphans: spread}"},
}

// normed is a network with batch norm.
type normed struct{ *model.Engine }

func (m normed) Describe() model.Description {
	d := m.Engine.Describe()
	d.Buffers = []int{3, 3}
	return d
}

func resolveText(t *testing.T, text string) error {
	t.Helper()
	c := small()
	if err := c.Parse("run.yaml", []byte(text)); err != nil {
		t.Fatal(err)
	}
	of := small()
	of.Mixup, of.Cutmix = c.Mixup, c.Cutmix
	if _, err := c.Network(); err == nil {
		of.Algo, of.Optimizer, of.WeightDecay = c.Algo, c.Optimizer, c.WeightDecay
	}
	var m Model = labModel(t, of)
	if strings.Contains(text, "model: resnet20") {
		m = normed{labModel(t, of)}
	}
	_, err := c.Resolve(labSet, m)
	return err
}

// Each key that only some runs use is refused where it is set and has no effect, and accepted where
// it has one. Keys whose other values are refused anyway are not in the table.
func TestKeysWithoutEffect(t *testing.T) {
	for key, c := range effectCases {
		err := resolveText(t, c.refused)
		if ce, ok := errors.AsType[*Error](err); !ok || ce.Key != key ||
			!strings.Contains(err.Error(), "has no effect on this run: it needs") {
			t.Errorf("%s: error %v", c.refused, err)
		}
		if err := resolveText(t, c.accepted); err != nil {
			t.Errorf("%s: error %v", c.accepted, err)
		}
	}
	var ce *Error // of a key with two conditions
	if err := resolveText(t, "eval_test: 100000"); !errors.As(err, &ce) || ce.Key != "eval_test" ||
		!strings.Contains(err.Error(), "as many test examples") {
		t.Errorf("eval_test: error %v", err)
	}
	need := strings.Fields("eta mixing")
	for _, m := range builtin {
		need = append(need, m.keys()...)
	}
	for _, k := range own {
		if len(k.Needs) > 0 {
			need = append(need, k.Name)
		}
	}
	for _, key := range need {
		if _, ok := effectCases[key]; !ok || !slices.Contains(Keys(), key) {
			t.Errorf("key %q of the tables exists: %v, and has a case: %v", key, slices.Contains(Keys(), key), ok)
		}
	}
}

// The refusal names the key, its value and all that would use it.
func TestRefusalOfKeyWithoutEffect(t *testing.T) {
	err := resolveText(t, "{algo: dsgd, gamma: 0.3, warmup: 2}")
	want := "config: gamma 0.3: has no effect on this run: it needs algo fspda-sa, fspda-storm, fspda-sa-sketch, " +
		"fspda-sa-ef, fspda-async, fspda-async-storm or gasloc; leave it out, or choose what uses it\nconfig: " +
		"warmup 2: has no effect on this run: it needs schedule cosine; " +
		"leave it out, or choose what uses it"
	if err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
}

// A resolved configuration replays as it is, with each algorithm, and so does one to which a key
// has been added since. A key that is set over it is refused as ever.
func TestResolvedConfigurationsReplay(t *testing.T) {
	for _, name := range Algorithms() {
		c := small()
		c.Algo, c.EvalPoints, c.Gamma, c.Warmup, c.Epochs, c.Iterations = name, 3, 0.4, 3, 12, Default().Iterations
		if name == "relaysgd" {
			c.Graph = "path"
		}
		s, m := resolve(t, c)
		var again Config
		text := string(s.Config.Stored().YAML())
		if name == "led" {
			text = strings.Replace(text, "layer_lr: \"\"\n", "", 1)
		}
		if err := again.Parse("config.yaml", []byte(text)); err != nil {
			t.Fatal(err)
		}
		if _, err := again.Resolve(labSet, m); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		again.SetExplicit("storm_start")
		if _, err := again.Resolve(labSet, m); (err == nil) != (name == "fspda-storm") {
			t.Errorf("%s with a flag for storm_start: %v", name, err)
		}
	}
}

// Setups that differ in keys without an effect are the same run.
func TestEffective(t *testing.T) {
	effective := func(edit func(c *Config)) string {
		c := small()
		edit(&c)
		s, _ := resolve(t, c)
		return s.Effective(c)
	}
	plain := effective(func(*Config) {})
	for name, edit := range map[string]func(c *Config){
		"theta": func(c *Config) { c.Theta.V, c.Theta.Auto = 0.3, false }, "warmup": func(c *Config) { c.Warmup = 2 },
		"edges": func(c *Config) { c.Edges = "one-edge" }} {
		if got := effective(edit); got != plain {
			t.Errorf("%s makes another run: %s", name, got)
		}
	}
	for name, edit := range map[string]func(c *Config){
		"gamma": func(c *Config) { c.Gamma = 0.3 }, "algo": func(c *Config) { c.Algo = "dsgd" },
		"eval_points": func(c *Config) { c.EvalPoints = 2 }} {
		if effective(edit) == plain {
			t.Errorf("%s makes no other run", name)
		}
	}
}

// A folder of files that is set without a data set is recognised, or the data set is asked for.
func TestFindData(t *testing.T) {
	for file, want := range map[string]string{"train-images-idx3-ubyte.gz": "mnist", "train-images.idx3-ubyte": "mnist",
		"data_batch_1.bin": "cifar10", "cifar-10-batches-bin/data_batch_1.bin": "cifar10",
		"fine_label_names.txt": "cifar100", "cifar-100-binary/fine_label_names.txt": "cifar100",
		"train/n01440764/a.JPEG": "imagenet", "ILSVRC2012_img_train.tar": "imagenet", "train/cat/a.jpg": "", "x": ""} {
		dir := t.TempDir()
		name := filepath.Join(dir, filepath.FromSlash(file))
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, nil, 0o644)); err != nil {
			t.Fatal(err)
		}
		c := Default()
		c.DataDir = dir
		c.SetExplicit("data_dir")
		err := c.FindData()
		if want != "" && (err != nil || c.Data != want) {
			t.Errorf("%s: data %s, %v; want %s", file, c.Data, err, want)
		}
		if want == "" && (err == nil || !strings.Contains(err.Error(), "add data, which is mnist, cifar10")) {
			t.Errorf("%s: data %s, %v", file, c.Data, err)
		}
		c = Default()
		c.DataDir, c.Data = dir, "folder"
		c.SetExplicit("data", "data_dir")
		if err := c.FindData(); err != nil || c.Data != "folder" {
			t.Errorf("%s: data folder became %s, %v", file, c.Data, err)
		}
	}
}
