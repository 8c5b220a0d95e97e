package model

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gorgonia.org/gorgonia"

	"fspda/device"
)

// Transformer describes a language model. Zero fields take the values of the named network.
type Transformer struct {
	Layers, Heads, Width int
	Block                int    // the largest number of tokens of a window
	GELU                 string // gpt: "tanh", the form of GPT-2 and the default, or "erf"
	NoBias               bool   // gpt: no biases in linear and norm layers
	Hidden               int    // width of the feed-forward layers; 0: 4 times Width, llama 8/3 times, to 64
}

// transformers are the named language models.
var transformers = []struct {
	name string
	Transformer
}{
	{"gpt-nano", Transformer{Layers: 4, Heads: 4, Width: 128, Block: 64}},
	{"gpt-char", Transformer{Layers: 6, Heads: 6, Width: 384, Block: 256}},
	{"gpt2", Transformer{Layers: 12, Heads: 12, Width: 768, Block: 1024}},
	{"gpt2-medium", Transformer{Layers: 24, Heads: 16, Width: 1024, Block: 1024}},
	{"llama-nano", Transformer{Layers: 4, Heads: 4, Width: 128, Block: 64}},
}

// TransformerNames lists the named language models.
func TransformerNames() (names []string) {
	for _, t := range transformers {
		names = append(names, t.name)
	}
	return names
}

// IsTransformer reports whether a named network is a language model.
func IsTransformer(name string) bool {
	_, is := NamedTransformer(name, Transformer{})
	return is
}

// NamedTransformer returns the sizes of a named language model with the fields of t that are not
// zero, and whether there is one of that name. Of a width that the heads of the model do not divide
// it has fewer heads, unless t says how many.
func NamedTransformer(name string, t Transformer) (Transformer, bool) {
	for _, named := range transformers {
		if named.name != name {
			continue
		}
		of := named.Transformer
		width := cmp.Or(t.Width, of.Width)
		for of.Heads > 1 && (width%of.Heads != 0 || isLlama(name) && width/of.Heads%2 != 0) {
			of.Heads--
		}
		return Transformer{Layers: cmp.Or(t.Layers, of.Layers), Heads: cmp.Or(t.Heads, of.Heads),
			Width: width, Block: cmp.Or(t.Block, of.Block), GELU: cmp.Or(t.GELU, "tanh"),
			NoBias: t.NoBias, Hidden: t.Hidden}, true
	}
	return t, false
}

// isLlama reports whether a language model has the layers of Llama.
func isLlama(name string) bool { return len(name) > 5 && name[:5] == "llama" }

// openTransformer returns a named language model for windows of tokens of the given shape, which is
// empty or has one axis.
func openTransformer(name string, o Options) (*Network, error) {
	t, _ := NamedTransformer(name, o.Transformer)
	length := t.Block
	if len(o.Shape) == 1 && o.Shape[0] > 0 {
		length = o.Shape[0]
	}
	var err error
	switch {
	case len(o.Shape) > 1:
		err = fmt.Errorf("an example has the shape %v, want windows of tokens: choose a data set of text", o.Shape)
	case len(o.Hidden) > 0 || o.Activation != "":
		err = fmt.Errorf("options Hidden %v and Activation %q belong to mlp: remove them", o.Hidden, o.Activation)
	case o.Recompute != "" && o.Recompute != RecomputeNone && o.Recompute != RecomputeBlocks:
		err = fmt.Errorf("option Recompute is %q, want %s or %s", o.Recompute, RecomputeNone, RecomputeBlocks)
	case isLlama(name) && o.Dropout != 0:
		err = fmt.Errorf("option Dropout is %v, but llama has none: remove it", o.Dropout)
	case isLlama(name) && (o.Transformer.GELU != "" || o.Transformer.NoBias):
		err = fmt.Errorf("options GELU and NoBias belong to gpt: llama has SwiGLU and no biases")
	default:
		err = cmp.Or(t.validate(o.Classes), o.Loss.validate())
	}
	if err == nil && isLlama(name) && t.Width/t.Heads%2 != 0 {
		err = fmt.Errorf("width %d divides into %d heads of %d numbers, want an even number, which rotary positions "+
			"turn in pairs: choose another width or number of heads", t.Width, t.Heads, t.Width/t.Heads)
	}
	if err != nil {
		return nil, fmt.Errorf("model: %s: %w", name, err)
	}
	if err := checkDropout(o.Dropout); err != nil {
		return nil, fmt.Errorf("model: %s: %w", name, err)
	}
	n := Network{inputs: t.Block, tokens: true, block: t.Block, classes: o.Classes, loss: o.Loss,
		recompute: o.Recompute == RecomputeBlocks}
	n.name = fmt.Sprintf("%s of %d layers, %d heads, width %d, block %d, %d tokens", name, t.Layers, t.Heads, t.Width,
		t.Block, o.Classes)
	if isLlama(name) {
		t.Hidden = cmp.Or(t.Hidden, (8*t.Width/3+63)/64*64)
		n.block, n.forward = 0, llama{t, o.Classes}.forward
	} else {
		t.Hidden = cmp.Or(t.Hidden, 4*t.Width)
		n.forward = gpt{t, o.Classes, o.Dropout}.forward
	}
	net, err := newNetwork(n)
	if err != nil {
		return nil, err
	}
	return net.Window(length)
}

// maxVocabulary is the largest number of tokens: a stream holds them in 16 bits.
const maxVocabulary = 1 << 16

func (t Transformer) validate(vocabulary int) error {
	for _, o := range []struct {
		name    string
		n, most int
	}{{"Layers", t.Layers, maxLayers}, {"Heads", t.Heads, maxWidth}, {"Width", t.Width, maxWidth},
		{"Block", t.Block, maxWidth}} {
		if o.n < 1 || o.n > o.most {
			return fmt.Errorf("option %s is %d, want 1 to %d", o.name, o.n, o.most)
		}
	}
	if t.Hidden < 0 || t.Hidden > maxWidth {
		return fmt.Errorf("option Hidden is %d, want 0 to %d", t.Hidden, maxWidth)
	}
	if t.Width%t.Heads != 0 {
		return fmt.Errorf("width %d does not divide into %d heads: choose a multiple of the number of heads", t.Width,
			t.Heads)
	}
	if !slices.Contains([]string{"", "tanh", "erf"}, t.GELU) {
		return fmt.Errorf("option GELU is %q, want tanh or erf", t.GELU)
	}
	if vocabulary < 2 || vocabulary > maxVocabulary {
		return fmt.Errorf("a vocabulary of %d tokens, want 2 to %d: choose a data set of text", vocabulary,
			maxVocabulary)
	}
	return nil
}

// Window returns the network for windows of another length. All have the same parameters.
func (n *Network) Window(length int) (*Network, error) {
	if !n.tokens {
		return nil, fmt.Errorf("model: %s takes no windows of tokens", n.name)
	}
	if length < 1 || n.block > 0 && length > n.block {
		return nil, fmt.Errorf("model: %s: windows of %d tokens, want 1 to %d: choose a larger block", n.name, length,
			n.block)
	}
	other := *n
	other.inputs = length
	return &other, nil
}

// normalTensor is a matrix that starts with normal numbers.
func normalTensor(name string, deviation float64, rows, columns int) Tensor {
	return Tensor{Name: name, Shape: []int{rows, columns}, FanIn: columns, start: start{normal, deviation}}
}

// embedding is a table of vectors, one for each row.
func embedding(name string, rows, width int) Tensor {
	t := normalTensor(name, embedDeviation, rows, width)
	t.table = true
	return t
}

// embedDeviation is the standard deviation of the initial matrices, those before a residual sum
// excepted.
const embedDeviation = 0.02

// residualDeviation is the standard deviation of matrices before a residual sum, two in each layer.
func (t Transformer) residualDeviation() float64 {
	return embedDeviation / math.Sqrt(2*float64(t.Layers))
}

// rowNorm adds a normalization of rows: name.weight, and name.bias unless plain.
func (b *builder) rowNorm(k device.Kernel, name string, bias bool, x *gorgonia.Node) *gorgonia.Node {
	b.layer = name
	width := x.Shape()[x.Shape().Dims()-1]
	in := []*gorgonia.Node{x, b.paramOf(Tensor{Name: name + ".weight", Shape: []int{width}, FanIn: 1, norm: true,
		start: start{constant, 1}})}
	if bias {
		in = append(in, b.paramOf(Tensor{Name: name + ".bias", Shape: []int{width}, FanIn: 1, norm: true,
			start: start{constant, 0}}))
	}
	return b.apply(k, normEpsilon, in...)
}

// dense adds a linear layer whose weight starts with normal numbers: name.weight, and name.bias
// with a bias.
func (b *builder) dense(t Tensor, bias bool, x *gorgonia.Node) *gorgonia.Node {
	name := t.Name
	b.layer = name
	t.Name = name + ".weight"
	w := b.paramOf(t)
	if !bias {
		return b.apply(device.Product, 0, x, w)
	}
	shift := b.paramOf(Tensor{Name: name + ".bias", Shape: t.Shape[:1], FanIn: t.FanIn, start: start{constant, 0}})
	return b.apply(device.Linear, 0, x, w, shift)
}

func (b *builder) add(x, y *gorgonia.Node) *gorgonia.Node { return b.apply(device.Add, 0, x, y) }

// logits returns the logits: of all tokens, or of the last ones of the windows.
func (b *builder) logits(layer string, x, tokens *gorgonia.Node) *gorgonia.Node {
	b.layer = layer
	if b.kind == Next || b.kind == Continue {
		x = b.apply(device.LastToken, 0, x)
	}
	return b.apply(device.Product, 0, x, tokens)
}

// attention adds an attention over windows up to a length. To continue a window, it
// reads and moves the buffer name.cache.
func (b *builder) attention(name string, heads, positions int, qkv *gorgonia.Node) *gorgonia.Node {
	b.layer = name
	g := geometry{heads: heads}
	if b.kind != Continue {
		return b.applyWindow(device.Attention, g, qkv)
	}
	shape := []int{positions, qkv.Shape()[2] / 3 * 2}
	b.buffers.add(Tensor{Name: name + ".cache", Shape: shape, Size: size(shape), start: start{constant, 0}})
	cache, index := b.leaf(name+".cache", shape...), len(b.buffers.tensors)-1
	b.bufferOf[cache] = index
	y := b.applyWindow(device.AttentionStep, g, qkv, cache, b.position())
	b.updates = append(b.updates, bufferMove{index, b.project(y, 1)})
	return y
}

// position returns the leaf of the position of the first token of a part of a window.
func (b *builder) position() *gorgonia.Node {
	for n, space := range b.data {
		if space == device.Labels {
			return n
		}
	}
	return nil
}

// embed adds the embeddings of tokens and of their positions.
func (b *builder) embed(ids, tokens, positions *gorgonia.Node) *gorgonia.Node {
	if b.kind != Continue {
		return b.apply(device.Embed, 0, ids, tokens, positions)
	}
	return b.apply(device.EmbedStep, 0, ids, tokens, positions, b.position())
}

// rotated turns queries and keys by the angles of their positions.
func (b *builder) rotated(heads int, qkv *gorgonia.Node) *gorgonia.Node {
	g := geometry{heads: heads}
	if b.kind != Continue {
		return b.applyAs(device.RoPE, g, ropeTheta, qkv)
	}
	return b.applyAs(device.RoPEStep, g, ropeTheta, qkv, b.position())
}

// gpt is a GPT-2: layers that normalize first, learned positions, and the embedding of the tokens
// as the last layer.
type gpt struct {
	Transformer
	vocabulary int
	dropout    float64 // share of zeros in the embedding and in each term that is added to it
}

func (g gpt) forward(b *builder, ids *gorgonia.Node) *gorgonia.Node {
	b.layer = "wte"
	tokens := b.paramOf(embedding("wte.weight", g.vocabulary, g.Width))
	b.layer = "wpe"
	positions := b.paramOf(embedding("wpe.weight", g.Block, g.Width))
	x := b.dropout("drop", g.dropout, b.embed(ids, tokens, positions))
	for l := range g.Layers {
		b.inBlock(func() { x = g.block(b, fmt.Sprintf("h.%d.", l), x) })
	}
	return b.logits("lm_head", g.norm(b, "ln_f", x), tokens)
}

func (g gpt) norm(b *builder, name string, x *gorgonia.Node) *gorgonia.Node {
	if g.NoBias {
		return b.rowNorm(device.LayerNormPlain, name, false, x)
	}
	return b.rowNorm(device.LayerNorm, name, true, x)
}

// block is a layer: attention and two dense layers, each after a norm and added to its input.
func (g gpt) block(b *builder, name string, x *gorgonia.Node) *gorgonia.Node {
	gelu := device.GELUTanh
	if g.GELU == "erf" {
		gelu = device.GELUErf
	}
	y := g.norm(b, name+"ln_1", x)
	joined := normalTensor(name+"attn.c_attn", embedDeviation, 3*g.Width, g.Width)
	joined.Blocks = 3 // queries, keys and values
	y = b.dense(joined, !g.NoBias, y)
	y = b.attention(name+"attn", g.Heads, g.Block, y)
	y = b.dense(normalTensor(name+"attn.c_proj", g.residualDeviation(), g.Width, g.Width), !g.NoBias, y)
	x = b.add(x, b.dropout(name+"attn.resid_dropout", g.dropout, y))
	y = g.norm(b, name+"ln_2", x)
	y = b.dense(normalTensor(name+"mlp.c_fc", embedDeviation, g.Hidden, g.Width), !g.NoBias, y)
	y = b.activation(name+"mlp.gelu", gelu, y)
	y = b.dense(normalTensor(name+"mlp.c_proj", g.residualDeviation(), g.Width, g.Hidden), !g.NoBias, y)
	return b.add(x, b.dropout(name+"mlp.dropout", g.dropout, y))
}

// llama is a Llama: RMS norm, rotary positions, SwiGLU, no biases, and the embedding of the tokens
// as the last layer.
type llama struct {
	Transformer
	vocabulary int
}

// ropeTheta is the base of the angles of rotary positions.
const ropeTheta = 10000

func (m llama) forward(b *builder, ids *gorgonia.Node) *gorgonia.Node {
	b.layer = "model.embed_tokens"
	tokens := b.paramOf(embedding("model.embed_tokens.weight", m.vocabulary, m.Width))
	x := b.apply(device.TokenEmbed, 0, ids, tokens)
	for l := range m.Layers {
		b.inBlock(func() { x = m.block(b, fmt.Sprintf("model.layers.%d.", l), x) })
	}
	return b.logits("lm_head", b.rowNorm(device.RMSNorm, "model.norm", false, x), tokens)
}

// block is a layer: attention and a gated feed-forward layer, each after a norm and added to its
// input.
func (m llama) block(b *builder, name string, x *gorgonia.Node) *gorgonia.Node {
	y := b.rowNorm(device.RMSNorm, name+"input_layernorm", false, x)
	y = b.dense(m.joined(name+"self_attn.", "qkv_proj", m.Width, "q_proj", "k_proj", "v_proj"), false, y)
	b.layer = name + "self_attn"
	y = b.attention(name+"self_attn", m.Heads, m.Block, b.rotated(m.Heads, y))
	y = b.dense(normalTensor(name+"self_attn.o_proj", m.residualDeviation(), m.Width, m.Width), false, y)
	x = b.add(x, y)
	y = b.rowNorm(device.RMSNorm, name+"post_attention_layernorm", false, x)
	y = b.dense(m.joined(name+"mlp.", "gate_up_proj", m.Hidden, "gate_proj", "up_proj"), false, y)
	y = b.activation(name+"mlp.act", device.SwiGLU, y)
	y = b.dense(normalTensor(name+"mlp.down_proj", m.residualDeviation(), m.Width, m.Hidden), false, y)
	return b.add(x, y)
}

// joined is a tensor of several matrices with equal numbers of rows, one below the other.
func (m llama) joined(layer, name string, rows int, parts ...string) Tensor {
	t := normalTensor(layer+name, embedDeviation, len(parts)*rows, m.Width)
	t.Blocks = len(parts)
	for _, p := range parts {
		t.Parts = append(t.Parts, layer+p+".weight")
	}
	return t
}
