package weights

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"fspda/internal/bounded"
	"fspda/model"
	"fspda/train"
	"fspda/train/safetensors"
)

// Names of the embedding of the tokens, by which a GPT-2 and a Llama are known, of the positions,
// and of the last layer, which has the same weights.
const (
	gptTokens   = "wte.weight"
	llamaTokens = "model.embed_tokens.weight"
	positions   = "wpe.weight"
	lastLayer   = "lm_head.weight"
	gptPrefix   = "transformer."
)

// ropeTheta is the base of the angles of a Llama's rotary positions.
const ropeTheta = 10000.0

func hasTensor(net *model.Network, name string) bool {
	_, ok := net.Layout().Tensor(name)
	return ok
}

// conv1D matches the weights of a GPT-2 that files have as inputs × outputs.
var conv1D = regexp.MustCompile(`\.(attn\.c_attn|attn\.c_proj|mlp\.c_fc|mlp\.c_proj)\.weight$`)

// unused matches tensors of files that hold no weights: masks and angles.
var unused = regexp.MustCompile(`\.attn\.(masked_)?bias$|\.rotary_emb\.inv_freq$`)

// transpose writes a matrix with the given number of rows to dst with its axes exchanged.
func transpose(dst, values []float32, rows int) {
	columns := len(values) / rows
	for r := range rows {
		for c := range columns {
			dst[c*rows+r] = values[r*columns+c]
		}
	}
}

// languageTensors returns the tensors of a language model as transformers has them. The tensors of
// a GPT-2 are under its prefix, with weights as inputs × outputs, and biases of zeros where the
// network has none.
func languageTensors(net *model.Network, x []float32) (ts []safetensors.Tensor) {
	gpt := hasTensor(net, gptTokens)
	for _, t := range net.Layout().Parts() {
		values, shape, name := x[t.Offset:t.Offset+t.Size], t.Shape, t.Name
		if gpt {
			name = gptPrefix + name
		}
		if gpt && conv1D.MatchString(t.Name) {
			turned := make([]float32, t.Size)
			transpose(turned, values, shape[0])
			values, shape = turned, []int{shape[1], shape[0]}
		}
		ts = append(ts, safetensors.Tensor{Name: name, Shape: shape, Values: values})
		layer, weight := strings.CutSuffix(t.Name, ".weight")
		if gpt && weight && t.Name != gptTokens && t.Name != positions && !hasTensor(net, layer+".bias") {
			ts = append(ts, safetensors.Tensor{Name: gptPrefix + layer + ".bias", Shape: t.Shape[:1],
				Values: make([]float32, t.Shape[0])})
		}
	}
	return ts
}

// SaveLanguageModel writes config.json and model.safetensors to a folder, from which transformers
// loads the network (AutoModelForCausalLM), and returns the number of tensors. t are the sizes of
// the network; end is the token that ends a text; -1: none.
func SaveLanguageModel(folder string, t model.Transformer, net *model.Network, x []float32, end int,
	meta map[string]string) (tensors int, err error) {
	var eos any
	if end >= 0 {
		eos = end
	}
	config := map[string]any{"vocab_size": net.Classes(), "tie_word_embeddings": true, "bos_token_id": eos,
		"eos_token_id": eos, "torch_dtype": "float32"}
	if hasTensor(net, gptTokens) {
		wpe, _ := net.Layout().Tensor(positions)
		fc, _ := net.Layout().Tensor("h.0.mlp.c_fc.weight")
		var inner any
		if fc.Shape[0] != 4*t.Width {
			inner = fc.Shape[0]
		}
		gelu := "gelu_new"
		if t.GELU == "erf" {
			gelu = "gelu"
		}
		for k, v := range map[string]any{"architectures": []string{"GPT2LMHeadModel"}, "model_type": "gpt2",
			"n_positions": wpe.Shape[0], "n_ctx": wpe.Shape[0], "n_embd": t.Width, "n_layer": t.Layers,
			"n_head": t.Heads, "n_inner": inner, "activation_function": gelu, "layer_norm_epsilon": 1e-5,
			"resid_pdrop": 0.0,
			"embd_pdrop":  0.0, "attn_pdrop": 0.0} {
			config[k] = v
		}
	} else {
		var hidden int
		for _, p := range net.Layout().Parts() {
			if p.Name == "model.layers.0.mlp.gate_proj.weight" {
				hidden = p.Shape[0]
			}
		}
		for k, v := range map[string]any{"architectures": []string{"LlamaForCausalLM"}, "model_type": "llama",
			"hidden_size": t.Width, "intermediate_size": hidden, "num_hidden_layers": t.Layers,
			"num_attention_heads": t.Heads, "num_key_value_heads": t.Heads, "rms_norm_eps": 1e-5,
			"rope_theta": ropeTheta, "max_position_embeddings": net.Inputs(), "hidden_act": "silu",
			"attention_bias": false, "mlp_bias": false} {
			config[k] = v
		}
	}
	text, err := json.MarshalIndent(config, "", "  ")
	if err != nil {
		return 0, err
	}
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return 0, &train.FolderError{Path: folder, Got: "cannot be created", Err: err,
			Hint: "choose another with --out"}
	}
	ts := languageTensors(net, x)
	if err := Save(filepath.Join(folder, "model.safetensors"), ts, meta); err != nil {
		return 0, err
	}
	return len(ts), saveFile(filepath.Join(folder, "config.json"), func(w io.Writer) error {
		_, err := w.Write(append(text, '\n'))
		return err
	})
}

// language prepares the reader for the file of a language model: names without the prefix, the
// orientation of its weights, tensors that hold no weights, and tensors that must be zero or equal
// to others.
func (r *reader) language() error {
	if r.net == nil || !r.net.Tokens() {
		return nil
	}
	for _, t := range r.Tensors() {
		name := strings.TrimPrefix(t.Name, gptPrefix)
		r.names[name] = t.Name
		if unused.MatchString(t.Name) {
			r.known[t.Name] = true
		}
	}
	if t, ok := r.net.Layout().Tensor("h.0.attn.c_attn.weight"); ok {
		info := r.infos[r.names[t.Name]]
		r.transposed = slices.Equal(info.Shape, []int{t.Shape[1], t.Shape[0]})
	}
	for name, file := range r.names {
		layer, bias := strings.CutSuffix(name, ".bias")
		if !bias || r.known[file] || hasTensor(r.net, name) || !hasTensor(r.net, layer+".weight") {
			continue
		}
		values, err := r.floats(file)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(values, func(v float32) bool { return v != 0 }) {
			return fmt.Errorf("its tensor %q is not zero, and %s has no biases: leave --bias=false out", file,
				r.net.Name())
		}
		r.known[file] = true
	}
	if err := r.checkConfig(); err != nil {
		return err
	}
	return r.tied()
}

// languageConfig holds the settings in config.json of a GPT-2 or a Llama that its tensors do not
// show.
type languageConfig struct {
	Type       string  `json:"model_type"`
	GPTHeads   int     `json:"n_head"`
	LlamaHeads int     `json:"num_attention_heads"`
	GELU       string  `json:"activation_function"`
	Gate       string  `json:"hidden_act"`
	Theta      float64 `json:"rope_theta"`
}

// maxConfig bounds the size of config.json.
const maxConfig = 1 << 20

// checkConfig compares config.json beside the file of a language model with the network:
// with other heads or another GELU the same weights are another function.
func (r *reader) checkConfig() error {
	path := filepath.Join(filepath.Dir(r.path), "config.json")
	text, err := bounded.File(path, maxConfig)
	if errors.Is(err, fs.ErrNotExist) || r.o.Sizes.Heads == 0 {
		return nil
	}
	var c languageConfig
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	if err != nil {
		return fmt.Errorf("%s beside it cannot be read, want the sizes of the network, or no such file: %w", path, err)
	}
	gelu := map[string]string{"gelu": "erf", "gelu_new": "tanh", "gelu_pytorch_tanh": "tanh"}[c.GELU]
	switch heads := max(c.GPTHeads, c.LlamaHeads); {
	case c.Type != "gpt2" && c.Type != "llama":
		return nil
	case heads != 0 && heads != r.o.Sizes.Heads:
		return fmt.Errorf("%s says %d heads, %s has %d: set heads to %d", path, heads, r.net.Name(), r.o.Sizes.Heads,
			heads)
	case c.Type == "gpt2" && c.GELU != "" && gelu == "":
		return fmt.Errorf("%s says activation_function %q, want gelu_new or gelu", path, c.GELU)
	case c.Type == "gpt2" && c.GELU != "" && gelu != r.o.Sizes.GELU:
		return fmt.Errorf("%s says activation_function %q, which is gelu %s: %s is set to %s", path, c.GELU, gelu,
			r.net.Name(), r.o.Sizes.GELU)
	case c.Type == "llama" && c.Gate != "" && c.Gate != "silu":
		return fmt.Errorf("%s says hidden_act %q, want silu", path, c.Gate)
	case c.Type == "llama" && c.Theta != 0 && c.Theta != ropeTheta:
		return fmt.Errorf("%s says rope_theta %v, want %v", path, c.Theta, ropeTheta)
	}
	return nil
}

// tied checks that the last layer has the weights of the embedding, if the file has it.
func (r *reader) tied() error {
	file, ok := r.names[lastLayer]
	if !ok {
		return nil
	}
	tokens := cmp.Or(r.names[gptTokens], r.names[llamaTokens])
	last, err := r.floats(file)
	if err != nil {
		return err
	}
	if first, err := r.floats(tokens); err != nil {
		return err
	} else if !slices.Equal(first, last) {
		return fmt.Errorf("its tensor %q is not the embedding %q: %s uses the embedding as its last layer", file,
			tokens, r.net.Name())
	}
	r.known[file] = true
	return nil
}

func (r *reader) floats(file string) ([]float32, error) {
	raw, err := r.bytes(file)
	if err != nil {
		return nil, err
	}
	values, ok := safetensors.Floats(r.infos[file].DType, raw)
	if !ok {
		return nil, fmt.Errorf("its tensor %q is of type %s, want F32, F64, F16 or BF16", file, r.infos[file].DType)
	}
	return values, nil
}

// shapeInFile returns the shape that the file has to have for a tensor, given the one that it has:
// weights of a GPT-2 may be inputs × outputs, and positions may be more.
func (r *reader) shapeInFile(t model.Tensor, has []int) []int {
	shape := t.TorchShape()
	switch {
	case r.transposed && conv1D.MatchString(t.Name):
		return []int{shape[1], shape[0]}
	case t.Name == positions && len(has) == 2 && has[0] > shape[0]:
		return []int{has[0], shape[1]}
	}
	return shape
}

// place writes the values of the file to the tensor: transposed, cropped, or in the order of our
// axes.
func (r *reader) place(t model.Tensor, dst, values []float32) {
	switch {
	case r.transposed && conv1D.MatchString(t.Name):
		transpose(dst, values, t.Shape[1])
	case len(values) > t.Size: // more positions
		copy(dst, values)
	default:
		t.FromTorch(dst, values)
	}
}
