package fspda_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"fspda/cpu"
	"fspda/data"
	"fspda/internal/testing/doctable"
	"fspda/model"
	"fspda/train"
)

const hashFile = "testdata/result-hashes.json"

// results lists small configurations that together cover every algorithm, mask, graph, edge
// process, codec and clock. Each is YAML on top of smallConfig. A change of the code must not
// change one bit of what they compute: testdata/result-hashes.json holds the SHA-256 of their
// metrics, models and identity. Rewrite it with go test -run TestResultHashes -update ., and only
// on purpose.
var results = map[string]string{
	"sa":                 "algo: fspda-sa",
	"sa momentum cosine": "{algo: fspda-sa, momentum: 0.9, alpha: 0.05, schedule: cosine, warmup: 1}",
	"sa stale neighbour": "{algo: fspda-sa, dual: stale-neighbour, edges: matching, graph: complete}",
	"sa periodic":        "{algo: fspda-sa, edges: periodic(5), gamma: 0.3, graph: grid}",
	"sa torus k-edges":   "{algo: fspda-sa, agents: 9, graph: torus, edges: k-edges(2), mask: stratified}",
	"sa er bernoulli":    "{algo: fspda-sa, graph: er(0.6), edges: bernoulli(0.3), mask: bernoulli}",
	"sa star block":      "{algo: fspda-sa, graph: star, mask: block, weight_decay: 0.01, decay: weights}",
	"sa exponential":     "{algo: fspda-sa, agents: 8, graph: exponential, mask: randk-per-layer, clip_norm: 0.5}",
	"sa hypercube coin": "{algo: fspda-sa, agents: 8, graph: hypercube, edges: coin(0.4), mask: all, gamma: 0.2, " +
		"objective: samples, partition: dirichlet(0.3), batch: 4}",
	"sa regular fp16":    "{algo: fspda-sa, agents: 6, graph: regular(3), wire: fp16}",
	"sa path bf16 parts": "{algo: fspda-sa, graph: path, wire: bf16, accumulate: 3, activation: relu}",
	"sa full sampling": "{algo: fspda-sa, sampling: full, metrics: test, eval_test: 40, eval_agents: 2, " +
		"iterations: 20}",
	"sa links":   "{algo: fspda-sa, links: wan.yaml, edges: k-edges(2)}",
	"sa dropout": "{algo: fspda-sa, hidden: [30], activation: relu, dropout: 0.3}",
	"storm":      "{algo: fspda-storm, sampling: iid}",
	"storm lagged": "{algo: fspda-storm, a_x: 0.2, a_lambda: 0.05, storm_start: zero, storm_lambda: lagged, " +
		"mask: randk-per-layer, label_smoothing: 0.1}",
	"dsgd metropolis": "{algo: dsgd, weights: metropolis, order: atc, edges: bernoulli(0.5)}",
	"dsgd links":      "{algo: dsgd, links: wan.yaml}",
	"scaffnew":        "{algo: scaffnew, momentum: 0.5, alpha: 0.1, share: 0.9}",
	"led":             "{algo: led, local_steps: 5, momentum: 0.5, alpha: 0.1}",
	"kgt":             "{algo: kgt, local_steps: 5, outer_step: 0.8, mixing: lazy-metropolis}",
	"diging":          "{algo: diging, edges: bernoulli(0.5)}",
	"extra":           "algo: extra",
	"prox-gpda":       "algo: prox-gpda",
	"next":            "{algo: next, kappa: 0.001, sampling: full, iterations: 20}",
	"choco randk":     "{algo: choco, density: 0.5}",
	"choco topk":      "{algo: choco, compress: topk, edges: broadcast(0.6), density: 0.5}",
	"choco qsgd":      "{algo: choco, compress: qsgd(255)}",
	"choco links":     "{algo: choco, compress: qsgd-scaled(7), norms: flat, links: wan.yaml}",
	"swarm":           "algo: swarm",
	"swarm lattice":   "{algo: swarm, compress: 'lattice(0.01,1024)', edges: matching}",
	"swarm blocking": "{algo: swarm, compress: 'lattice(0.01,1024,stochastic)', swarm: blocking, local_steps: " +
		"2, initiator: degree}",
	"async":       "{algo: fspda-async, slowness: linear(4), compute_time: lognormal(0.5)}",
	"async storm": "{algo: fspda-async-storm, slowness: linear(4), a_lambda: 0.2}",
	"async links": "{algo: fspda-async, links: wan.yaml}",
	"sgd":         "algo: sgd",
	"sa adamw":    "{algo: fspda-sa, optimizer: adamw, alpha: 0.01, weight_decay: 0.01, decay: weights}",
	"sa nesterov corrected": "{algo: fspda-sa, optimizer: nesterov, momentum: 0.5, alpha: 0.1, placement: corrected, " +
		"clip_norm: 1, decay: 'by-name(fc1.weight)'}",
	"dsgd adamw": "{algo: dsgd, weights: metropolis, order: atc, edges: full, optimizer: adamw, beta2: 0.99, alpha: " +
		"0.005, placement: auto, clip_norm: 0.5}",
	"diging momentum tracking": "{algo: diging, edges: bernoulli(0.5), optimizer: heavy-ball, placement: local, " +
		"momentum: 0.5, alpha: 0.1}",
	"dmsgd":           "{algo: dmsgd, momentum: 0.5, alpha: 0.1}",
	"qg-dsgdm":        "{algo: qg-dsgdm, optimizer: nesterov, momentum: 0.5, alpha: 0.1, edges: full}",
	"decentlam":       "{algo: decentlam, momentum: 0.5, alpha: 0.1, edges: full}",
	"dsgd base":       "{algo: dsgd, graph: base(1), order: atc, density: 1}",
	"diloco":          "{algo: diloco, local_steps: 5, optimizer: adamw, alpha: 0.01, schedule: cosine, warmup: 1}",
	"local-sgd links": "{algo: local-sgd, local_steps: 5, links: wan.yaml}",
	"noloco":          "{algo: noloco, local_steps: 5, graph: complete}",
	"gasloc":          "{algo: gasloc, local_steps: 4, graph: base(1), params: {outer_momentum: 0.5}}",
	"sparta-diloco":   "{algo: sparta-diloco, optimizer: adamw, alpha: 0.01, mask: cycle, params: {outer_steps: 5}}",
	"sparta":          "{algo: sparta, optimizer: adamw, alpha: 0.01}",
	"demo":            "{algo: demo, alpha: 0.01, compress: 'dct(8,4)', links: wan.yaml}",
	"d2":              "{algo: d2, mixing: half-lazy(metropolis), momentum: 0.5, alpha: 0.1}",
	"dsgt atc":        "{algo: dsgt, params: {form: atc}, edges: bernoulli(0.5), momentum: 0.5, alpha: 0.1}",
	"gt-adam":         "{algo: gt-adam, alpha: 0.02}",
	"sgp":             "{algo: sgp, agents: 6, graph: one-peer-exp}",
	"sgp push":        "{algo: sgp, edges: push(1), links: wan.yaml}",
	"relaysgd":        "{algo: relaysgd, graph: binary-tree, momentum: 0.5, alpha: 0.1}",
	"powergossip":     "{algo: powergossip, edges: bernoulli(0.5)}",
	"sa sketch":       "{algo: fspda-sa-sketch}",
	"beer qsgd":       "{algo: beer, compress: qsgd-scaled(7)}",
	"ef21 sign":       "{algo: choco, compress: sign, early: true}",
	"sa ef topk":      "{algo: fspda-sa-ef, compress: topk, edges: bernoulli(0.5)}",
	"sa ef sign":      "{algo: fspda-sa-ef, compress: sign, momentum: 0.5, alpha: 0.1, links: wan.yaml}",
	"ticopd":          "{algo: ticopd, compress: sign}",
	"docom":           "{algo: docom, compress: topk, density: 0.5}",
	"docom randk":     "{algo: docom, graph: complete, a_x: 0.3}",
	"des-loc":         "{algo: des-loc, local_steps: 5, alpha: 0.01, params: {moment_rounds: 1, square_rounds: 2}}",
	"muloco":          "{algo: muloco, local_steps: 5, alpha: 0.01, hidden: [8]}",
	"sa muon":         "{algo: fspda-sa, optimizer: muon, alpha: 0.01, hidden: [8, 8]}",
	"sparseloco":      "{algo: sparseloco, local_steps: 5, params: {side: 8, k: 4}}",
	"diloco int4":     "{algo: diloco, local_steps: 5, params: {quantize: int4, block: 7}}",
	"diloco int2":     "{algo: diloco, local_steps: 5, params: {quantize: int2}}",
	"diloco fp8":      "{algo: diloco, local_steps: 5, params: {quantize: fp8, collective: gather, feedback: 0.9}}",
	"diloco eager":    "{algo: diloco, local_steps: 5, params: {outer: eager, outer_lr: 0.4}}",
	"streaming late":  "{algo: streaming-diloco, local_steps: 4, density: 0.25, params: {delay: 2}, links: wan.yaml}",
	"streaming":       "{algo: streaming-diloco, local_steps: 2, density: 0.2}",
	"schedule-free":   "{algo: sgd, optimizer: schedule-free-sgd}",
	"wsd":             "{algo: fspda-sa, schedule: wsd, decay_length: 20, average: ema(0.9)}",
	"resnet20": "{model: resnet20, data: synthetic-images, crop: 8, data_train: 120, data_test: 40, " +
		"agents: 2, batch: 8, iterations: 6, alpha: 0.05}",
	"resnet20 local norm": "{model: resnet20, data: synthetic-images, crop: 8, data_train: 120, data_test: 40, " +
		"agents: 2, batch: 8, iterations: 4, alpha: 0.05, bn: local, recompute: blocks, accumulate: 2}",
}

// simulatedLinks is wan.yaml of the configurations above.
const simulatedLinks = "{gradient_ms: 10, gradient_law: exp, slowness: 'straggler(3)', uplink_mbit: 2, default: " +
	"{latency_ms: 50, bandwidth_mbit: 1, loss: 0.2}}"

// smallConfig trains in milliseconds.
func smallConfig() train.Config {
	c := train.Default()
	c.DataTrain, c.DataTest, c.Hidden = 400, 100, train.Widths{6}
	c.Agents, c.Graph, c.Partition, c.Batch = 5, "ring", "sorted", 16
	c.Iterations, c.EvalPoints, c.Checkpoint = 60, 3, 0
	c.DecayTensors = "all" // the default when the hashes were made
	return c
}

func TestResultHashes(t *testing.T) {
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		t.Skip("the metrics use math.Exp and math.Log, whose last bit differs between processors: the hashes are " +
			"those of amd64, and arm64 has the same")
	}
	want := map[string]string{}
	text, err := os.ReadFile(hashFile)
	if err := errors.Join(err, json.Unmarshal(text, &want)); err != nil && !*doctable.Update {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "wan.yaml"), []byte(simulatedLinks), 0o644); err != nil {
		t.Fatal(err)
	}
	home, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(folder)
	got := map[string]string{}
	for name, yaml := range results {
		t.Run(name, func(t *testing.T) {
			got[name] = hashOf(t, yaml)
			if got[name] != want[name] && !*doctable.Update {
				t.Errorf("hash %s, want %s: the results of this configuration have changed", got[name], want[name])
			}
		})
	}
	if len(want) != len(results) && !*doctable.Update {
		t.Errorf("%s has %d hashes, want %d", hashFile, len(want), len(results))
	}
	if *doctable.Update {
		text, err := json.MarshalIndent(got, "", "\t")
		if err := errors.Join(err, os.WriteFile(filepath.Join(home, hashFile), append(text, '\n'), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

// hashOf trains a configuration and returns the hash of all that it computed.
func hashOf(t *testing.T, yaml string) string {
	t.Helper()
	c := smallConfig()
	if err := c.Parse(t.Name(), []byte(yaml)); err != nil {
		t.Fatal(err)
	}
	c.TakeExplicit() // the hash of swarm blocking covers initiator, which has no effect on it
	set, err := smallSet(c)
	if err != nil {
		t.Fatal(err)
	}
	of, err := c.Network()
	if err != nil {
		t.Fatal(err)
	}
	o := model.Options{Shape: set.Shape, Classes: set.Classes, Recompute: model.Recompute(c.Recompute),
		Loss: model.LossOptions{WeightDecay: of.L2(), Decay: model.Decay(c.DecayTensors), LabelSmoothing: c.Smoothing}}
	if c.Model == "mlp" {
		o.Hidden, o.Activation, o.Dropout = c.Hidden, c.Activation, c.Dropout
	}
	net, err := model.Open(c.Model, o)
	if err != nil {
		t.Fatal(err)
	}
	dev := cpu.New()
	engine := model.NewEngine(net, dev)
	setup, err := c.Resolve(set, engine)
	if err != nil {
		t.Fatal(err)
	}
	res, err := train.Run(context.Background(), setup, train.Options{Device: dev, Model: engine})
	if err != nil {
		t.Fatal(err)
	}
	h := sha256.New()
	for _, row := range res.Rows {
		row.WallS = 0
		line, err := json.Marshal(row)
		if err != nil {
			t.Fatal(err)
		}
		line, _, _ = bytes.Cut(line, []byte(`,"train_data_loss_avg"`)) // added later
		fmt.Fprintf(h, "%s}\n", line)
	}
	for i := range res.Models {
		hashFloats(h, res.Models[i])
		if res.Buffers != nil {
			hashFloats(h, res.Buffers[i])
		}
	}
	hashFloats(h, res.Mean)
	hashFloats(h, res.MeanBuffers)
	for _, pair := range setup.Identity(engine.Describe().Sizes()) {
		fmt.Fprintf(h, "%s=%s\n", pair[0], pair[1])
	}
	return hex.EncodeToString(h.Sum(nil))[:32]
}

func smallSet(c train.Config) (*data.Set, error) {
	if c.Data == "synthetic-images" {
		return data.SyntheticImages(data.SyntheticImagesOptions{Train: c.DataTrain, Test: c.DataTest, Seed: 3},
			data.ImageOptions{Crop: c.Crop, JPEG: "go"})
	}
	return data.Synthetic(data.SyntheticOptions{Train: c.DataTrain, Test: c.DataTest, Seed: 3})
}

func hashFloats(h hash.Hash, v []float32) {
	var b [4]byte
	for _, x := range v {
		binary.LittleEndian.PutUint32(b[:], math.Float32bits(x))
		h.Write(b[:])
	}
}
