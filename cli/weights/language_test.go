package weights

import (
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fspda/cpu"
	"fspda/model"
	"fspda/train"
	"fspda/train/safetensors"
)

// small are the sizes of the language models of the tests.
var small = model.Transformer{Layers: 2, Heads: 2, Width: 16, Block: 8}

func openLanguage(t *testing.T, name string, change func(*model.Transformer)) (*model.Network, model.Transformer) {
	t.Helper()
	sizes := small
	if change != nil {
		change(&sizes)
	}
	net, err := model.Open(name, model.Options{Classes: 11, Transformer: sizes})
	if err != nil {
		t.Fatal(err)
	}
	sizes, _ = model.NamedTransformer(name, sizes)
	return net, sizes
}

// varied returns parameters that are all different.
func varied(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(math.Sin(float64(7*i+1))) * 0.3
	}
	return x
}

// A folder for transformers has its names, shapes and configuration, and is read back to the same
// weights, as is a plain file.
func TestLanguageModelFiles(t *testing.T) {
	for what, c := range map[string]struct {
		name   string
		change func(*model.Transformer)
		shapes map[string][]int
		config map[string]any
	}{
		"gpt": {"gpt-nano", nil, map[string][]int{"transformer.h.1.attn.c_attn.weight": {16, 48},
			"transformer.h.0.mlp.c_fc.weight": {16, 64}, "transformer.wte.weight": {11, 16},
			"transformer.wpe.weight": {8, 16},
			"transformer.ln_f.bias":  {16}}, map[string]any{"activation_function": "gelu_new", "n_positions": 8.0,
			"n_inner": nil, "vocab_size": 11.0, "eos_token_id": nil, "model_type": "gpt2"}},
		"gpt without biases": {"gpt-nano", func(s *model.Transformer) { s.NoBias, s.GELU, s.Hidden = true, "erf", 24 },
			map[string][]int{"transformer.h.1.attn.c_attn.bias": {48}, "transformer.h.0.mlp.c_fc.weight": {16, 24},
				"transformer.ln_f.bias": {16}}, map[string]any{"activation_function": "gelu", "n_inner": 24.0}},
		"llama": {"llama-nano", nil, map[string][]int{"model.layers.1.self_attn.k_proj.weight": {16, 16},
			"model.layers.0.mlp.gate_proj.weight": {64, 16}, "model.embed_tokens.weight": {11, 16}},
			map[string]any{"intermediate_size": 64.0, "model_type": "llama", "num_key_value_heads": 2.0}},
	} {
		net, sizes := openLanguage(t, c.name, c.change)
		x, dir := varied(net.Dim()), t.TempDir()
		n, err := SaveLanguageModel(filepath.Join(dir, "hf"), sizes, net, x, -1,
			Metadata("run", "mean", 7, net, train.Default()))
		if err != nil {
			t.Fatal(err)
		}
		f, err := safetensors.Open(filepath.Join(dir, "hf", "model.safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range c.shapes {
			if info, ok := f.Info(name); !ok || !slices.Equal(info.Shape, want) {
				t.Errorf("%s: %s has the shape %v, want %v", what, name, info.Shape, want)
			}
		}
		if got := len(f.Tensors()); got != n {
			t.Errorf("%s: %d tensors, %d were said", what, got, n)
		}
		_ = f.Close()
		b, err := os.ReadFile(filepath.Join(dir, "hf", "config.json"))
		var config map[string]any
		if err == nil {
			err = json.Unmarshal(b, &config)
		}
		for k, want := range c.config {
			if err != nil || config[k] != want {
				t.Errorf("%s: %s is %v, want %v (%v)", what, k, config[k], want, err)
			}
		}
		if err := Save(filepath.Join(dir, "own.safetensors"), Tensors(net, x, nil, 0), nil); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{filepath.Join(dir, "hf"), filepath.Join(dir, "own.safetensors")} {
			if w, err := Read(path, net, Options{}); err != nil || !slices.Equal(w.X, x) {
				t.Errorf("%s: %s is read back differently: %v", what, filepath.Base(path), err)
			}
		}
	}
}

// Files of others: without prefix, with masks and the last layer, with more positions than the block;
// what does not fit is refused.
func TestForeignLanguageModels(t *testing.T) {
	large, _ := openLanguage(t, "gpt-nano", func(s *model.Transformer) { s.Block = 20 })
	x := varied(large.Dim())
	embedding := func(ts []safetensors.Tensor) []float32 { return ts[0].Values.([]float32) }
	for want, c := range map[string]struct {
		change func(ts []safetensors.Tensor) []safetensors.Tensor
		bias   bool
	}{
		"": {func(ts []safetensors.Tensor) []safetensors.Tensor {
			for i := range ts {
				ts[i].Name = strings.TrimPrefix(ts[i].Name, gptPrefix)
			}
			return append(ts, safetensors.Tensor{Name: "h.0.attn.bias", Shape: []int{1, 1, 2, 2},
				Values: make([]float32, 4)},
				safetensors.Tensor{Name: "lm_head.weight", Shape: ts[0].Shape, Values: embedding(ts)})
		}, true},
		"is not the embedding": {func(ts []safetensors.Tensor) []safetensors.Tensor {
			return append(ts, safetensors.Tensor{Name: "lm_head.weight", Shape: ts[0].Shape,
				Values: make([]float32, len(embedding(ts)))})
		}, true},
		"has no biases": {func(ts []safetensors.Tensor) []safetensors.Tensor { return ts }, false},
		"which gpt-nano of": {func(ts []safetensors.Tensor) []safetensors.Tensor {
			return append(ts, safetensors.Tensor{Name: "transformer.h.9.ln_1.weight", Shape: []int{1},
				Values: []float32{1}})
		}, true},
		"has the shape": {func(ts []safetensors.Tensor) []safetensors.Tensor {
			ts[1].Shape = []int{16, 20}
			return ts
		}, true},
	} {
		path := filepath.Join(t.TempDir(), "model.safetensors")
		if err := Save(path, c.change(languageTensors(large, x)), nil); err != nil {
			t.Fatal(err)
		}
		net, _ := openLanguage(t, "gpt-nano", func(s *model.Transformer) { s.NoBias = !c.bias })
		w, err := Read(path, net, Options{})
		if want != "" {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", want, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range net.Layout().Tensors() { // wpe is cropped
			from, _ := large.Layout().Tensor(at.Name)
			if !slices.Equal(w.X[at.Offset:at.Offset+at.Size], x[from.Offset:from.Offset+at.Size]) {
				t.Errorf("%s differs", at.Name)
			}
		}
	}
}

// A configuration beside the file has to describe the same function; another file is none of ours.
func TestLanguageConfigBesideFile(t *testing.T) {
	for _, name := range []string{"gpt-nano", "llama-nano"} {
		net, sizes := openLanguage(t, name, nil)
		dir := t.TempDir()
		if _, err := SaveLanguageModel(dir, sizes, net, varied(net.Dim()), -1, nil); err != nil {
			t.Fatal(err)
		}
		written, err := os.ReadFile(filepath.Join(dir, "config.json"))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct{ from, to, want string }{
			{"", "", ""},
			{`heads": 2`, `heads": 4`, "llama: says 4 heads"},
			{`n_head": 2`, `n_head": 4`, "gpt: says 4 heads"},
			{`"gelu_new"`, `"gelu"`, "gpt: which is gelu erf"},
			{`"gelu_new"`, `"relu"`, `gpt: says activation_function "relu"`},
			{`theta": 10000`, `theta": 500000`, "llama: says rope_theta 500000"},
			{`"silu"`, `"gelu"`, `llama: says hidden_act "gelu"`},
			{`"model_type": "`, `"model_type": "x`, ""},
			{`{`, `[`, "cannot be read"},
		} {
			family, want, ok := strings.Cut(c.want, ": ")
			if ok && !strings.HasPrefix(name, family) {
				continue
			} else if !ok {
				want = c.want
			}
			changed := strings.Replace(string(written), c.from, c.to, 1)
			if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(changed), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := Read(dir, net, Options{Sizes: sizes})
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%s, %s for %s: %v, want %q", name, c.to, c.from, err, want)
			}
		}
	}
}

// transformers loads our language models and gives the same logits. FSPDA_PEERS names a Python that has
// it; make peers makes one.
func TestTransformers(t *testing.T) {
	python := os.Getenv("FSPDA_PEERS")
	if python == "" {
		t.Skip("set FSPDA_PEERS to a Python with transformers, such as that of make peers")
	}
	if out, err := exec.Command(python, "-c", "import transformers, torch").CombinedOutput(); err != nil {
		t.Skipf("the Python of FSPDA_PEERS has no transformers or no torch: install both\n%s", out)
	}
	dir := t.TempDir()
	tokens := []uint16{3, 1, 4, 1, 5, 9, 2, 6}
	want := map[string][]float64{}
	for what, c := range map[string]struct {
		name   string
		change func(*model.Transformer)
	}{"gpt": {"gpt-nano", nil}, "gpt-erf-nobias": {"gpt-nano", func(s *model.Transformer) {
		s.NoBias, s.GELU = true, "erf"
	}}, "llama": {"llama-nano", nil}} {
		net, sizes := openLanguage(t, c.name, c.change)
		x := varied(net.Dim())
		if _, err := SaveLanguageModel(filepath.Join(dir, what), sizes, net, x, -1, nil); err != nil {
			t.Fatal(err)
		}
		dev := cpu.New(cpu.Threads(1))
		v := dev.NewVector(len(x))
		dev.Write(v, x)
		want[what] = make([]float64, net.Classes())
		if err := model.NewEngine(net, dev).Next(want[what], v, tokens); err != nil {
			t.Fatal(err)
		}
		_ = dev.Close()
	}
	cmd := exec.Command(python, filepath.Join("..", "..", "bench", "peers", "language.py"), dir, "3,1,4,1,5,9,2,6")
	cmd.Env = append(os.Environ(), "HF_HUB_OFFLINE=1", "HF_HOME="+dir)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var theirs map[string][]float64
	if err := json.Unmarshal(out, &theirs); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for what, ours := range want {
		far, largest := 0.0, 0.0
		for k, v := range ours {
			far, largest = math.Max(far, math.Abs(v-theirs[what][k])), math.Max(largest, math.Abs(v))
		}
		t.Logf("%s: logits up to %.3g, largest difference %.2g", what, largest, far)
		if !(far <= 1e-5*largest) || largest < 1e-3 {
			t.Errorf("%s: the logits differ by up to %g, of %g", what, far, largest)
		}
	}
}
